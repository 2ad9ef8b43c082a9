"""The model layouts of other systems, to and from ours; the only room that knows their names."""

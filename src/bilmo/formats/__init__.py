"""Old formats to and from ours; the only room that knows an old name."""

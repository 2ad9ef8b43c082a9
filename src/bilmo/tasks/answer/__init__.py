"""Questions answered from a text."""

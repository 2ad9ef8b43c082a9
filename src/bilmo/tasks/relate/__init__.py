"""One label per text with two marked spans."""

"""One label per pair of texts."""

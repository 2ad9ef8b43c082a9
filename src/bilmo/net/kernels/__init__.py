"""The arithmetic that must be fast: the only place with private operators of torch."""

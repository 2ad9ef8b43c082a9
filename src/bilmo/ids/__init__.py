"""Tokens to integer arrays: characters, vocabulary, batches. NumPy only."""

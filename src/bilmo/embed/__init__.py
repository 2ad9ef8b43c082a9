"""Sentences to vectors, with a loaded model."""

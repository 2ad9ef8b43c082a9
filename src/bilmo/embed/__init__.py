"""Sentences to vectors: the loaded model at work."""

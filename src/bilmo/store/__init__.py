"""Atomic writes, resumable runs, our model folder, word vector files."""

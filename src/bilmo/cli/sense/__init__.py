"""Commands that ask the vectors: what a word or one of its uses is like."""

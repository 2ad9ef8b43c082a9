"""The meaning of words: one vector per word, and its nearest neighbours."""

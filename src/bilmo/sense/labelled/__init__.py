"""Word sense disambiguation: senses learned from labelled text, and the senses of words in new text."""

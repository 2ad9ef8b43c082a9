"""What vectors mean: neighbours of a word."""

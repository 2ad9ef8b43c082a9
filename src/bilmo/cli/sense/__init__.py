"""Commands that ask vectors for meaning: senses and pictures."""

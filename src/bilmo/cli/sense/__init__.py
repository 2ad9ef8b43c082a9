"""Commands about words: similar words and uses, words that fit a place, senses, pictures."""

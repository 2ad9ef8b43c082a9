"""Words and their uses: similar words, similar uses, senses, pictures."""

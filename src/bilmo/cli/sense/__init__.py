"""Commands that ask a model what words mean: senses, pictures, words that fit, uses that are alike."""

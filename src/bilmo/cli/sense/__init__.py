"""Commands that ask a model what words mean: senses, pictures, words that fit."""

"""Objects to disk and back: our model folder, word vectors, embeddings."""

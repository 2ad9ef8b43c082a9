"""Write with the vectors: an encoder-decoder with attention and copying; translations and summaries."""

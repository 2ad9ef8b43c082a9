"""Tasks that write text: an encoder-decoder with attention and copying; translations and summaries."""

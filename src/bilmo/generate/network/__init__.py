"""The network that writes: encoder, decoder, search."""

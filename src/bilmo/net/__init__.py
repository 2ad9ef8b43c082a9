"""Tensors to layers to one vector a token: the network and its parts. Opens no file."""

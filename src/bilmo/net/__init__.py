"""Tensors to layers to one vector per token: the network and its parts. Opens no file."""

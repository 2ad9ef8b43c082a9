"""Parts of task networks: input, layer store, recurrent layers, pooling, CRF."""

"""Sources and targets: files of pairs, target text as tokens, items of the network."""

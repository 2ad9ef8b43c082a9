"""Word vectors that bilm-tf or AllenNLP precomputed: HDF5 with one dataset `embedding`, and a vocabulary beside it.

bilm-tf writes such a file with `dump_token_embeddings`. Ours is embed/word_cache_file.py.

Knows: hdf5, the old vocabulary. Blind to: networks.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bilmo.errors import VocabError, WeightsError
from bilmo.formats.bilmtf import read_vocab, vocab_file
from bilmo.formats.hdf5 import WeightsFile
from bilmo.store.validate import finite_float32, same_length


def read(path: Path, width: int) -> tuple[list[str], NDArray[np.float32]]:
    """Read the words and their vectors (words, width); of a repeated word, the last vector counts."""
    with WeightsFile(path) as file:
        found = file.shapes.get("embedding")
        if found is None or len(found) != 2 or found[1] != width:
            raise WeightsError(
                f"{path}: precomputed word vectors must be a dataset `embedding` of shape (words, {width}); "
                f"found {file.shapes}"
            )
        values = finite_float32(file.read("embedding"), f"{path}: embedding")
    beside = vocab_file(path.parent)
    if beside is None:
        raise VocabError(f"{path.parent}: no vocab.txt next to {path.name}, so the words of its vectors are unknown")
    words = read_vocab(beside).words
    same_length(beside, len(words), len(values))
    return list(words), values

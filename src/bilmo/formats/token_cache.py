"""Word vectors that an old system computed beforehand: HDF5 with one dataset `embedding`, a vocabulary beside it.

Knows: hdf5, the old vocabulary. Blind to: networks.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bilmo.errors import VocabError, WeightsError
from bilmo.formats.bilmtf import read_vocab, vocab_file
from bilmo.formats.hdf5 import WeightsFile
from bilmo.formats.weight_map import as_numbers
from bilmo.store.model_folder import same_length


def read(path: Path, width: int) -> tuple[list[str], NDArray[np.float32]]:
    """The words and a vector (words, width) for each; a word that stands twice has its last vector."""
    with WeightsFile(path) as file:
        found = file.shapes.get("embedding")
        if found is None or len(found) != 2 or found[1] != width:
            raise WeightsError(
                f"{path}: cached word vectors are a dataset `embedding` of shape (words, {width}); found {file.shapes}"
            )
        values = as_numbers(file.read("embedding"), f"{path}: embedding")
    beside = vocab_file(path.parent)
    if beside is None:
        raise VocabError(f"{path.parent}: no vocab.txt beside {path.name} to say which vector is which word's")
    words = read_vocab(beside).words
    same_length(beside, len(words), len(values))
    return list(words), values

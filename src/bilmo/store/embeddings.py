"""Vectors of many sentences in one HDF5 file, laid out as `allennlp elmo` wrote it.

Knows: h5py, writing beside. Blind to: how vectors are made.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import h5py
from numpy.typing import NDArray

from bilmo.errors import OutputError
from bilmo.store.beside import new_file

SENTENCES = "sentence_to_index"


def write(path: Path, sentences: Iterable[tuple[str, NDArray[Any]]]) -> int:
    """One dataset a sentence, named by its number from 0, and a JSON text of which sentence is which.

    Of equal sentences the last number is kept in that text, as ever; each has its own dataset all the same.
    """
    numbers: dict[str, str] = {}
    count = 0
    with new_file(path) as partial:
        try:
            file = h5py.File(partial, "w")
        except OSError as error:
            raise OutputError(f"{path}: cannot be written ({error})") from None
        with file:
            for text, vectors in sentences:
                file.create_dataset(str(count), data=vectors)
                numbers[text] = str(count)
                count += 1
            kind = h5py.string_dtype(encoding="utf-8")
            file.create_dataset(SENTENCES, data=[json.dumps(numbers)], dtype=kind, shape=(1,))
    return count

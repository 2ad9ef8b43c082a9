"""Vectors as HDF5, in the layout of `allennlp elmo`: one dataset per sentence, named by its number from 0.

Knows: h5py, atomic writes. Blind to: how vectors are made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from bilmo.embed.output.table import Table
from bilmo.store.atomic import new_file
from bilmo.store.hdf5_file import HDF5Writer

SENTENCES, TOKENS, OFFSETS = "sentence_to_index", "tokens", "offsets"
MOST_NAMED = 1_000_000
"""Sentences up to which `sentence_to_index` is written: readers load that text as a whole."""
SENTENCES_AT_ONCE = 4096
"""Sentences whose tokens are written in one call."""


def write(path: Path, table: Table, *, compress: bool = False) -> list[str]:
    """Write the file; returns notes on what was left out.

    `sentence_to_index` is a JSON text with the number of each sentence; of equal sentences the last, as in allennlp.
    `tokens` and `offsets` have one JSON list per sentence; they are written only if bilmo split the text. The
    attributes of the file say how it was made.
    """
    packing = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if compress else {}
    named = table.sentences <= MOST_NAMED
    with new_file(path) as partial, HDF5Writer(partial) as new:
        with new.writing() as file:
            file.attrs.update(table.spec.about)
        for number, row in enumerate(table.read()):
            with new.writing() as file:
                file.create_dataset(str(number), data=row.vectors, **(packing if row.vectors.size else {}))
        if named:
            numbers = _numbers(table)
            with new.writing() as file:
                file.create_dataset(SENTENCES, data=[numbers], dtype=h5py.string_dtype(), shape=(1,))
        if table.spec.split_by_bilmo:
            # Escaped, because strings in HDF5 cannot hold NUL or lone surrogates.
            _write_texts(new, TOKENS, (json.dumps(row.tokens) for row in table.read()), table.sentences)
            _write_texts(new, OFFSETS, (json.dumps(row.offsets) for row in table.read()), table.sentences)
    if named:
        return []
    return [f"{SENTENCES} is left out: the file has {table.sentences:,} sentences, the limit is {MOST_NAMED:,}"]


def _numbers(table: Table) -> bytes:
    """Texts to numbers as JSON, built piece by piece: a dictionary of all texts would take far more memory."""
    last = _last_of_equal(np.fromiter((hash(row.text.strip()) for row in table.read()), np.int64, table.sentences))
    text = bytearray(b"{")
    for number, row in enumerate(table.read()):
        if last[number]:
            text += b", " if len(text) > 1 else b""
            text += f'{json.dumps(row.text.strip())}: "{number}"'.encode("ascii")
    text += b"}"
    return bytes(text)


def _last_of_equal(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    _, from_end = np.unique(keys[::-1], return_index=True)
    last = np.zeros(len(keys), dtype=bool)
    last[len(keys) - 1 - from_end] = True
    return last


def _write_texts(new: HDF5Writer, name: str, texts: Iterator[str], number: int) -> None:
    """Write one text per sentence."""
    with new.writing() as file:
        file.create_dataset(name, (number,), h5py.string_dtype())
    for at in range(0, number, SENTENCES_AT_ONCE):
        some = list(islice(texts, SENTENCES_AT_ONCE))
        with new.writing() as file:
            file[name][at : at + len(some)] = some

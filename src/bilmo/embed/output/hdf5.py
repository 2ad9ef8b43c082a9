"""Vectors as HDF5, in the layout of `allennlp elmo`: one dataset per sentence, named by its number from 0.

Knows: h5py, atomic writes. Blind to: how vectors are made.
"""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from bilmo.embed.output.table import Table
from bilmo.store.atomic import new_file
from bilmo.store.hdf5_file import HDF5Writer

SENTENCES, TOKENS = "sentence_to_index", "tokens"
MOST_NAMED = 1_000_000
"""Sentences up to which `sentence_to_index` is written: readers load that text as a whole."""
SENTENCES_AT_ONCE = 4096
"""Sentences whose tokens are written in one call."""


def write(path: Path, table: Table, *, compress: bool = False) -> list[str]:
    """Write the file; returns notes on what was left out.

    `sentence_to_index` is a JSON text with the number of each sentence; of equal sentences the last, as in allennlp.
    `tokens` has one JSON list per sentence; it is written only if bilmo split the text.
    """
    packing = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if compress else {}
    named = table.sentences <= MOST_NAMED
    with new_file(path) as partial, HDF5Writer(partial) as new:
        for number, row in enumerate(table.read()):
            with new.writing() as file:
                file.create_dataset(str(number), data=row.vectors, **(packing if row.vectors.size else {}))
        if named:
            numbers = _numbers(table)
            with new.writing() as file:
                file.create_dataset(SENTENCES, data=[numbers], dtype=h5py.string_dtype(), shape=(1,))
        if table.spec.split_by_bilmo:
            _write_tokens(new, table)
    if named:
        return []
    return [f"{SENTENCES} is left out: the file has {table.sentences:,} sentences, the limit is {MOST_NAMED:,}"]


def _numbers(table: Table) -> bytes:
    """Texts to numbers as JSON, built piece by piece: a dictionary of all texts would take far more memory."""
    last = _last_of_equal(np.fromiter((hash(row.text) for row in table.read()), np.int64, table.sentences))
    text = bytearray(b"{")
    for number, row in enumerate(table.read()):
        if last[number]:
            text += b", " if len(text) > 1 else b""
            text += f'{json.dumps(row.text)}: "{number}"'.encode("ascii")
    text += b"}"
    return bytes(text)


def _last_of_equal(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    _, from_end = np.unique(keys[::-1], return_index=True)
    last = np.zeros(len(keys), dtype=bool)
    last[len(keys) - 1 - from_end] = True
    return last


def _write_tokens(new: HDF5Writer, table: Table) -> None:
    with new.writing() as file:
        file.create_dataset(TOKENS, (table.sentences,), h5py.string_dtype())
    some: list[str] = []
    at = 0
    for row in table.read():
        some.append(json.dumps(row.tokens))  # escaped, because strings in HDF5 cannot hold NUL or lone surrogates
        if len(some) == SENTENCES_AT_ONCE or at + len(some) == table.sentences:
            with new.writing() as file:
                file[TOKENS][at : at + len(some)] = some
            at, some = at + len(some), []

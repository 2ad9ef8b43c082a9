"""Vectors as .npy and .npz: one array of all tokens, or of all texts if tokens are pooled.

Knows: numpy's formats, atomic writes. Blind to: how vectors are made.
"""

# L layers, N tokens of all texts, S texts, W width

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bilmo.embed.output.table import Table
from bilmo.store.atomic import new_file


def write_npy(path: Path, table: Table) -> list[str]:
    """One array, and NAME.tokens.jsonl beside it with one line per text: its tokens and their offsets."""
    with new_file(path) as partial:
        with partial.open("wb") as file:
            write_array(file, _shape(table), table.spec.dtype, _pieces(table))
        with new_file(tokens_beside(path)) as tokens, tokens.open("wb") as file:
            file.writelines(_json({"tokens": row.tokens, "offsets": row.offsets}) + b"\n" for row in table.read())
    return []


def tokens_beside(path: Path) -> Path:
    """The file of tokens that belongs to a .npy file."""
    return path.with_suffix(".tokens.jsonl")


def write_npz(path: Path, table: Table, *, compress: bool = False) -> list[str]:
    """Write `vectors`, one array, and what belongs to it.

    `offsets`: where each text begins in it. `characters`: where each token begins and ends in its text. `tokens.json`:
    one list of tokens per text. `about.json`: how the file was made.
    """
    packing = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with (
        new_file(path) as partial,
        zipfile.ZipFile(partial, "w", packing, compresslevel=1 if compress else None) as archive,
    ):
        with archive.open(_entry(archive, "vectors.npy"), "w", force_zip64=True) as file:
            write_array(file, _shape(table), table.spec.dtype, _pieces(table))
        if not table.spec.pooled:
            ends = np.cumsum(np.fromiter((len(row.tokens) for row in table.read()), np.int64, table.sentences))
            with archive.open(_entry(archive, "offsets.npy"), "w", force_zip64=True) as file:
                write_array(file, (table.sentences + 1,), "int64", [np.array([0]), ends])
        with archive.open(_entry(archive, "characters.npy"), "w", force_zip64=True) as file:
            places = (np.array(row.offsets, dtype=np.int64).reshape(-1, 2) for row in table.read())
            write_array(file, (table.tokens, 2), "int64", places)
        archive.writestr(_entry(archive, "about.json"), json.dumps(table.spec.about))
        with archive.open(_entry(archive, "tokens.json"), "w", force_zip64=True) as file:
            for number, row in enumerate(table.read()):
                file.write((b",\n" if number else b"[") + _json(row.tokens))
            file.write(b"]" if table.sentences else b"[]")
    return []


def _entry(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """A file in an archive, without the time, so that equal runs write equal files."""
    info = zipfile.ZipInfo(name)
    info.compress_type = archive.compression
    info._compresslevel = archive.compresslevel  # type: ignore[attr-defined]
    return info


def write_array(file: IO[bytes], shape: tuple[int, ...], dtype: str, pieces: Iterable[NDArray[Any]]) -> None:
    """Write an array in numpy's format, one piece at a time."""
    kind = np.dtype(dtype).newbyteorder("<")
    npy.write_array_header_1_0(file, {"descr": kind.str, "fortran_order": False, "shape": shape})
    for piece in pieces:
        file.write(np.ascontiguousarray(piece, dtype=kind).data)


def _shape(table: Table) -> tuple[int, ...]:
    """(L, N, W); without L if layers are mixed, S instead of N if tokens are pooled."""
    spec = table.spec
    layers = () if spec.layers is None else (spec.layers,)
    return (*layers, table.sentences if spec.pooled else table.tokens, spec.width)


def _pieces(table: Table) -> Iterator[NDArray[Any]]:
    if table.spec.layers is None:
        yield from (row.vectors for row in table.read())
        return
    for layer in range(table.spec.layers):  # one layer after the other, so the texts are read once per layer
        yield from (row.vectors[layer] for row in table.read())


def _json(value: object) -> bytes:
    # UTF-8 cannot hold a lone surrogate; escaped it is valid JSON and is read back as it was.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")

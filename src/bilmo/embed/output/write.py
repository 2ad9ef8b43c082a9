"""Vectors of many sentences in a file, its format chosen by its name.

Knows: every writer. Blind to: how vectors are made.
"""

from __future__ import annotations

from pathlib import Path

from bilmo.embed.output.table import Form, Table
from bilmo.errors import ConfigError, OutputError

ENDINGS = (".h5", ".hdf5", ".parquet", ".npy", ".npz", ".jsonl", ".jsonl.gz", ".jsonl.xz", ".jsonl.zst")
PACKED = (".h5", ".hdf5", ".npz")
"""Formats that are packed when asked; Parquet always is, and JSON where the name says so."""


def ending(path: Path) -> str:
    """The ending that tells the format, one of ENDINGS."""
    name = path.name.lower()
    found = [known for known in ENDINGS if name.endswith(known)]
    if not found:
        raise OutputError(f"{path}: the name of a file of vectors ends in one of {', '.join(ENDINGS)}")
    return max(found, key=len)


def check(path: Path, *, compress: bool) -> None:
    """Refuse what cannot be written before anything is computed: the name, and packages that are missing."""
    kind = ending(path)
    try:
        if path.is_dir():
            raise OutputError(f"{path}: this is a folder. Name a file to write.")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}).") from None
    if compress and kind not in PACKED:
        raise ConfigError(f"{path}: only {', '.join(PACKED)} are packed by --compress. {_other_packing(kind)}")
    if kind == ".parquet":
        from bilmo.embed.output.parquet import arrow

        arrow()
    elif kind == ".jsonl.zst":
        from bilmo.embed.output.jsonl import opener

        opener(path)


def _other_packing(kind: str) -> str:
    if kind == ".parquet":
        return "Parquet always is."
    return "Name it .npz instead." if kind == ".npy" else "For JSON, let the name end in .jsonl.gz, .xz or .zst."


def size(path: Path, form: Form, *, sentences: int, tokens: int) -> int:
    """About how many bytes the file will have."""
    numbers = form.bytes(sentences=sentences, tokens=tokens)
    if ending(path).startswith(".jsonl"):  # digits, a point, a sign, a comma
        return numbers * (3 if form.dtype == "float32" else 5)
    return numbers


def write(path: Path, table: Table, *, compress: bool = False) -> list[str]:
    """Write all rows, in the format that the name says; the file appears when it is whole. What was left out is told.

    h5py and pyarrow take a moment to import, so only what is needed is.
    """
    kind = ending(path)
    if kind in (".h5", ".hdf5"):
        from bilmo.embed.output import hdf5 as as_hdf5

        return as_hdf5.write(path, table, compress=compress)
    if kind == ".parquet":
        from bilmo.embed.output import parquet as as_parquet

        return as_parquet.write(path, table)
    if kind in (".npy", ".npz"):
        from bilmo.embed.output import npy as as_numpy

        return as_numpy.write_npy(path, table) if kind == ".npy" else as_numpy.write_npz(path, table, compress=compress)
    from bilmo.embed.output import jsonl as as_jsonl

    return as_jsonl.write(path, table)

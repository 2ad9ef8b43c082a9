"""Write vectors of many texts to a file; its ending decides the format.

Knows: every writer. Blind to: how vectors are made.
"""

from __future__ import annotations

from pathlib import Path

from bilmo.embed.output.npy import tokens_beside
from bilmo.embed.output.table import Table, VectorSpec
from bilmo.errors import ConfigError, OutputError

ENDINGS = (".h5", ".hdf5", ".parquet", ".npy", ".npz", ".jsonl", ".jsonl.gz", ".jsonl.xz", ".jsonl.zst")
COMPRESSIBLE = (".h5", ".hdf5", ".npz")
"""Formats that --compress applies to. Parquet is always compressed, JSON lines if the ending says so."""


def ending(path: Path) -> str:
    """The ending that decides the format, one of ENDINGS."""
    name = path.name.lower()
    found = [known for known in ENDINGS if name.endswith(known)]
    if not found:
        raise OutputError(f"{path}: the extension selects the format; accepted: {', '.join(ENDINGS)}")
    return max(found, key=len)


def beside(path: Path) -> list[Path]:
    """The files that are written together with a file of vectors."""
    return [tokens_beside(path)] if ending(path) == ".npy" else []


def check(path: Path, *, compress: bool) -> None:
    """Refuse what cannot be written before anything is computed: a wrong name, a missing package."""
    kind = ending(path)
    try:
        if path.is_dir():
            raise OutputError(f"{path}: this is a folder. Name a file to write.")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}).") from None
    if compress and kind not in COMPRESSIBLE:
        raise ConfigError(f"{path}: --compress is for {', '.join(COMPRESSIBLE)} only. {_other_compression(kind)}")
    if kind == ".parquet":
        from bilmo.embed.output.parquet import arrow

        arrow()
    elif kind == ".jsonl.zst":
        from bilmo.embed.output.jsonl import opener

        opener(path)


def _other_compression(kind: str) -> str:
    if kind == ".parquet":
        return "Parquet files are always compressed."
    return "Use .npz instead." if kind == ".npy" else "For JSON lines use .jsonl.gz, .jsonl.xz or .jsonl.zst."


def size(path: Path, spec: VectorSpec, *, sentences: int, tokens: int) -> int:
    """The approximate size of the file in bytes."""
    numbers = spec.bytes(sentences=sentences, tokens=tokens)
    if ending(path).startswith(".jsonl"):  # digits, a point, a sign, a comma
        return numbers * (3 if spec.dtype == "float32" else 5)
    return numbers


def write(path: Path, table: Table, *, compress: bool = False) -> list[str]:
    """Write all texts in the format of the ending; the file appears when it is complete. Returns notes for the user.

    h5py and pyarrow are slow to import, so each is imported only for its own format.
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

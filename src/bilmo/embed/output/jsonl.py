"""Vectors as JSON, a line a sentence: for people's eyes and for programs that know nothing else.

Knows: json, packing. Blind to: how vectors are made.
"""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from bilmo.embed.output.table import Form, Row, Table
from bilmo.errors import need
from bilmo.store.atomic import new_file
from bilmo.text.files import ZSTD_MODULE

DIGITS = {"float32": "%.9g", "float16": "%.5g"}
"""As many as give back the very same number."""


def write(path: Path, table: Table) -> list[str]:
    """Write the file, packed where its name ends in .gz, .xz or .zst."""
    with new_file(path) as partial, opener(path)(partial, "wb") as file:
        file.writelines(line(row, table.form) + b"\n" for row in table.read())
    return []


def opener(path: Path) -> Callable[[Path, str], IO[bytes]]:
    """What opens a file for writing, packed as its ending says."""
    ending = path.suffix.lower()
    if ending == ".zst":
        zstd = need(ZSTD_MODULE, extra="zst", purpose=f"Writing {path}")
        opened: Callable[[Path, str], IO[bytes]] = zstd.open
        return opened
    known: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
    return known.get(ending, Path.open)


def line(row: Row, form: Form) -> bytes:
    """{"tokens": [...], "vectors": [[...], ...]}, or "vector" where tokens were pooled."""
    name = "vector" if form.pooled and form.layers is None else "vectors"
    tokens = json.dumps(row.tokens, ensure_ascii=False)
    text = f'{{"tokens": {tokens}, "{name}": {_numbers(row.vectors)}}}'
    # A lone surrogate has no bytes in UTF-8; as an escape it is JSON, and comes back as what it was.
    return text.encode("utf-8", "backslashreplace")


def _numbers(values: NDArray[Any]) -> str:
    if values.ndim > 1:
        return f"[{', '.join(map(_numbers, values))}]"
    return f"[{', '.join([DIGITS[values.dtype.name]] * len(values)) % tuple(values.tolist())}]"

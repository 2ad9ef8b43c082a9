"""Vectors as JSON lines, one line per text: easy to read for people and for any program.

Knows: json, compression. Blind to: how vectors are made.
"""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, cast

from numpy.typing import NDArray

from bilmo.embed.output.table import EmbeddedText, Table, VectorSpec
from bilmo.errors import need
from bilmo.store.atomic import new_file
from bilmo.text.files import ZSTD_MODULE

DIGITS = {"float32": "%.9g", "float16": "%.5g"}
"""Enough digits to read back exactly the same number."""


def write(path: Path, table: Table) -> list[str]:
    """Write the file, compressed if its name ends in .gz, .xz or .zst. Its first line also says how it was made."""
    with new_file(path) as partial, opener(path)(partial, "wb") as file:
        for number, row in enumerate(table.read()):
            file.write(line(row, table.spec, table.spec.about if number == 0 else None) + b"\n")
    return []


def opener(path: Path) -> Callable[[Path, str], AbstractContextManager[IO[bytes]]]:
    """The function that opens a file for writing, compressed according to its ending."""
    ending = path.suffix.lower()
    if ending == ".zst":
        zstd = need(ZSTD_MODULE, extra="zst", purpose=f"Writing {path}")
        opened: Callable[[Path, str], AbstractContextManager[IO[bytes]]] = zstd.open
        return opened
    known: dict[str, Callable[..., Any]] = {".gz": _gzip_open, ".xz": lzma.open}
    return known.get(ending, Path.open)


@contextmanager
def _gzip_open(path: Path, mode: str) -> Iterator[IO[bytes]]:
    """Like `gzip.open`, but without the name and the time of the file, so that equal runs write equal files."""
    with path.open(mode) as file, gzip.GzipFile("", mode, fileobj=file, mtime=0) as packed:
        yield cast("IO[bytes]", packed)


def line(row: EmbeddedText, spec: VectorSpec, about: dict[str, str] | None = None) -> bytes:
    """{"tokens": [...], "offsets": [[begin, end], ...], "vectors": [[...], ...]}, or "vector" if tokens are pooled.

    If there is something to say about the file, "about" comes first.
    """
    name = "vector" if spec.pooled and spec.layers is None else "vectors"
    first = {"about": about} if about else {}
    head = json.dumps(first | {"tokens": row.tokens, "offsets": row.offsets}, ensure_ascii=False)
    text = f'{head[:-1]}, "{name}": {numbers(row.vectors)}}}'
    # UTF-8 cannot hold a lone surrogate; escaped it is valid JSON and is read back as it was.
    return text.encode("utf-8", "backslashreplace")


def numbers(values: NDArray[Any]) -> str:
    """Vectors as nested JSON lists."""
    if values.ndim > 1:
        return f"[{', '.join(map(numbers, values))}]"
    return f"[{', '.join([DIGITS[values.dtype.name]] * len(values)) % tuple(values.tolist())}]"

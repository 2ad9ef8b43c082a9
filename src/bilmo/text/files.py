"""The lines of text files, plain or compressed, one at a time.

Knows: compression. Blind to: what a line means.
"""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import sys
import zipfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO
from zlib import error as ZlibError

from bilmo.errors import BilmoError, DamagedFile, TextError, need

STDIN = Path("-")
Paths = str | PathLike[str] | Iterable[str | PathLike[str]]
"""One path or several, as a user of Python gives them."""

# A compressed file is recognised by its first bytes, whatever its name.
GZIP, XZ, ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
ZSTD_MODULE = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a plain, .gz, .xz or .zst file, or standard input for "-", and read its decompressed bytes."""
    if path == STDIN:
        if sys.stdin is None:
            raise TextError(f"{path}: standard input is closed; pipe text into bilmo, or name a file")
        yield sys.stdin.buffer
        return
    try:
        raw = path.open("rb")
    except FileNotFoundError:
        raise TextError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise TextError(f"{path}: is a folder; name a file in it") from None
    except OSError as error:
        raise TextError(f"{path}: cannot be read ({error.strerror})") from None
    with raw, _unpacking(path, raw) as file:
        yield file


def _unpacking(path: Path, raw: io.BufferedReader) -> io.BufferedReader:
    first = raw.peek(6)
    if first.startswith(GZIP):
        return io.BufferedReader(gzip.GzipFile(fileobj=raw))
    if first.startswith(XZ):
        return io.BufferedReader(lzma.LZMAFile(raw))
    if first.startswith(ZSTD):
        zstd = need(ZSTD_MODULE, extra="zst", purpose=f"Reading {path}")
        return io.BufferedReader(zstd.ZstdFile(raw))
    return raw


def listed_paths(paths: Paths) -> list[Path]:
    """One path or several as a list."""
    given = [paths] if isinstance(paths, str | PathLike) or not isinstance(paths, Iterable) else list(paths)
    wrong = [path for path in given if not isinstance(path, str | PathLike)]
    if wrong or not given:
        found = f"found {wrong[0]!r:.60} ({type(wrong[0]).__name__})" if wrong else "the list is empty"
        raise TextError(f"texts must be the path of a text file or folder, or a list of paths; {found}")
    return [Path(path) for path in given]


def unpacking_errors() -> tuple[type[Exception], ...]:
    """What a damaged compressed file raises; Zstandard's own error exists only if its package was imported."""
    zstd = sys.modules.get(ZSTD_MODULE)
    return (EOFError, lzma.LZMAError, gzip.BadGzipFile, ZlibError, *((zstd.ZstdError,) if zstd else ()))


def lines(path: Path) -> Generator[str, None, None]:
    r"""Lines of UTF-8 text without their ends. Only "\n" or "\r\n" ends a line; a byte order mark is dropped."""
    with open_bytes(path) as file:
        yield from _decoded(file, str(path))


def all_lines(paths: Iterable[Path]) -> Iterator[str]:
    """Lines of many files, one after the other; a folder means all files in it, a zip all files it holds."""
    for path in files(paths):
        if path != STDIN and zipfile.is_zipfile(path):
            yield from _zipped(path)
        else:
            yield from lines(path)


def files(paths: Iterable[Path]) -> list[Path]:
    """Files in a fixed order; a folder is replaced by the files in it, sorted by name, without hidden ones."""
    found = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(
            file
            for file in path.rglob("*")
            if file.is_file() and not any(part.startswith(".") for part in file.relative_to(path).parts)
        )
        if not inside:
            raise TextError(f"{path}: the folder contains no files")
        found += inside
    return found


def _zipped(path: Path) -> Iterator[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            for member in sorted(archive.namelist()):
                if not member.endswith("/") and not member.startswith("__MACOSX"):
                    with archive.open(member) as file:
                        yield from _decoded(file, f"{path}: {member}")
    except BilmoError:
        raise
    except Exception as error:  # a damaged zip raises many kinds of errors
        raise DamagedFile(f"{path}: cannot be unpacked ({error}). The zip is damaged or encrypted.") from None


def _decoded(file: IO[bytes], name: str) -> Iterator[str]:
    number = 0
    try:
        for number, line in enumerate(file, start=1):
            text = line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
            yield text.removeprefix("\ufeff") if number == 1 else text
    except UnicodeDecodeError as error:
        raise TextError(
            f"{name}, line {number}: byte {error.start + 1} ({error.object[error.start]:#04x}) is not UTF-8. "
            + _advice(error.object)
        ) from None
    except unpacking_errors() as error:
        raise DamagedFile(
            f"{name}: decompression failed after line {number} ({error}). "
            "The file is truncated or damaged; download it again."
        ) from None


def _advice(line: bytes) -> str:
    """Advice for a line that is not UTF-8."""
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "It starts like UTF-16; convert it first: iconv -f UTF-16 -t UTF-8 OLD > NEW"
    if b"\0" in line:
        return "It contains zero bytes, so it is not text; name only text files."
    return (
        "bilmo reads UTF-8; convert the file first with: iconv -f ENCODING -t UTF-8 OLD > NEW. "
        "ENCODING is often LATIN1 in the West, GB18030 for Chinese."
    )

"""The lines of text files, plain or compressed, one at a time.

Knows: compression. Blind to: what a line means.
"""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import os
import sys
import zipfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, cast
from zlib import error as ZlibError

from bilmo.errors import BilmoError, DamagedFile, TextError, need

STDIN = Path("-")
Paths = str | PathLike[str] | Iterable[str | PathLike[str]]
"""One path or several, as a user of Python gives them."""

# A compressed file is recognized by its first bytes, whatever its name.
GZIP, XZ, ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
ZSTD_MODULE = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
LONGEST_LINE = 1 << 26
"""Bytes of a line, some ten million words: a small compressed file may hold gigabytes without a line end."""


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
    r"""Lines of UTF-8 without their ends. Only "\n" or "\r\n" ends a line; a byte order mark is dropped.

    For lists of words and characters, which may contain any character; `text_lines` is for text.
    """
    with open_bytes(path) as file:
        yield from decoded_lines(file, str(path))


def text_lines(path: Path) -> Iterator[str]:
    """Lines of a text file; zero bytes are refused, because they show that the file is UTF-16, or not text."""
    return _without_zeros(lines(path), str(path))


def all_lines(paths: Iterable[Path]) -> Iterator[str]:
    """Lines of many text files, one after the other; a folder means all files in it, a zip all files it holds."""
    return (line for _, rows in named_lines(paths) for line in rows)


def named_lines(paths: Iterable[Path]) -> Iterator[tuple[str, Iterator[str]]]:
    """The same, file by file: the name of each, and its lines, which must be read before the next file."""
    for path in files(paths):
        if path != STDIN and path.is_file() and zipfile.is_zipfile(path):  # not a pipe or a device, which may never end
            yield from _zipped(path)
        else:
            yield str(path), text_lines(path)


def _without_zeros(rows: Iterable[str], name: str) -> Iterator[str]:
    """English in UTF-16 is valid UTF-8 with a zero byte beside each letter."""
    for number, row in enumerate(rows, start=1):
        if "\0" in row:
            raise TextError(
                f"{name}, line {number}: contains zero bytes, so it is not UTF-8 text. Give only text files; "
                "convert UTF-16 first: iconv -f UTF-16LE -t UTF-8 OLD > NEW"
            )
        yield row


def files(paths: Iterable[Path]) -> list[Path]:
    """Files in a fixed order; a folder is replaced by the files in it, sorted by name, without hidden ones."""
    found = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(_inside(path))
        if not inside:
            raise TextError(f"{path}: the folder contains no files")
        found += inside
    return found


def _inside(folder: Path) -> Iterator[Path]:
    """All files in a folder and its sub-folders. A sub-folder that cannot be read is an error: its text would be lost.

    Hidden files and folders are left out; links to folders are not followed.
    """

    def fail(error: OSError) -> None:
        raise TextError(
            f"{error.filename}: cannot be read ({error.strerror}), so the text in {folder} would be incomplete. "
            "Change its permissions, or name the files to read."
        ) from None

    for place, subfolders, names in os.walk(folder, onerror=fail):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        for file in (Path(place, name) for name in names if not name.startswith(".")):
            try:
                if file.is_file():
                    yield file
            except OSError as error:
                fail(error)


def _zipped(path: Path) -> Iterator[tuple[str, Iterator[str]]]:
    with _zip_errors(path), zipfile.ZipFile(path) as archive:
        for member in sorted(archive.namelist()):
            if not member.endswith("/") and not member.startswith("__MACOSX"):
                name = f"{path}: {member}"
                yield name, _member_lines(path, archive, member, name)


def _member_lines(path: Path, archive: zipfile.ZipFile, member: str, name: str) -> Iterator[str]:
    with _zip_errors(path), archive.open(member) as packed:
        file = io.BufferedReader(cast("io.RawIOBase", packed))  # its own readline is slow
        yield from _without_zeros(decoded_lines(file, name), name)


@contextmanager
def _zip_errors(path: Path) -> Iterator[None]:
    """A damaged zip raises many kinds of errors."""
    try:
        yield
    except BilmoError:
        raise
    except Exception as error:
        raise DamagedFile(f"{path}: cannot be unpacked ({error}). The zip is damaged or encrypted.") from None


def decoded_lines(file: IO[bytes], name: str) -> Iterator[str]:
    r"""Lines of UTF-8 text in an open file, without their ends. Only "\n" or "\r\n" ends a line."""
    number = 0
    try:
        for number, line in enumerate(byte_lines(file, name, LONGEST_LINE), start=1):
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


def byte_lines(file: IO[bytes], name: str, longest: int) -> Iterator[bytes]:
    """Lines with their ends. One of more than `longest` bytes is refused before it is in memory."""
    number = 0
    while line := file.readline(longest + 1):
        number += 1
        if len(line) > longest:
            raise TextError(
                f"{name}, line {number}: has more than {longest:,} bytes without a line end, so it is not lines of "
                "text. Name only text files, and put line ends between paragraphs."
            )
        yield line


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

"""Lines from a file, whatever it is packed in, one at a time.

Knows: compression. Blind to: what a line means.
"""

from __future__ import annotations

import gzip
import io
import lzma
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO
from zlib import error as ZlibError

from bilmo.errors import DamagedFile, TextError, need

STDIN = Path("-")

# A packed file is known by its first bytes, so a wrong ending does no harm.
GZIP, XZ, ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"


def open_bytes(path: Path) -> AbstractContextManager[IO[bytes]]:
    """Open a plain, .gz, .xz or .zst file, or standard input for "-", to read its unpacked bytes."""
    if path == STDIN:
        return nullcontext(sys.stdin.buffer)
    try:
        raw = path.open("rb")
    except FileNotFoundError:
        raise TextError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise TextError(f"{path}: this is a folder; name a file in it") from None
    except OSError as error:
        raise TextError(f"{path}: cannot be read ({error.strerror})") from None
    first = raw.peek(6)
    if first.startswith(GZIP):
        return io.BufferedReader(gzip.GzipFile(fileobj=raw))
    if first.startswith(XZ):
        return io.BufferedReader(lzma.LZMAFile(raw))
    if first.startswith(ZSTD):
        module = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
        zstd = need(module, extra="zst", purpose=f"Reading {path}")
        return io.BufferedReader(zstd.ZstdFile(raw))
    return raw


UNPACKING_ERRORS = (EOFError, lzma.LZMAError, gzip.BadGzipFile, ZlibError)


def lines(path: Path) -> Iterator[str]:
    r"""Lines of UTF-8 text without their ends; only "\n" or "\r\n" ends a line, a byte order mark is dropped."""
    with open_bytes(path) as file:
        number = 0
        try:
            for number, line in enumerate(file, start=1):
                text = line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
                yield text.removeprefix("\ufeff") if number == 1 else text
        except UnicodeDecodeError as error:
            raise TextError(
                f"{path}, line {number}: byte {error.start + 1} ({error.object[error.start]:#04x}) is not "
                "UTF-8. bilmo reads UTF-8; convert the file first, for example with: "
                "iconv -f LATIN1 -t UTF-8 OLD > NEW"
            ) from None
        except UNPACKING_ERRORS as error:
            raise DamagedFile(
                f"{path}: unpacking broke off after line {number} ({error}). "
                "The file is truncated or damaged; fetch it again."
            ) from None

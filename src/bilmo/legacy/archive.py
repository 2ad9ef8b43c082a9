"""A model in a zip, unpacked for a moment, after a look at what it would unpack to.

Knows: zip. Blind to: what the files are.
"""

from __future__ import annotations

import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from bilmo.errors import DamagedFile, UnsafeFile

MOST_FILES = 10_000
SLACK, RATIO = 1 << 26, 100
"""A file may unpack to 64 MB plus a hundred times its packed size; weights hardly compress at all."""


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The folder that the zip holds; gone when the `with` ends."""
    try:
        with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory(prefix="bilmo-") as name:
            folder = Path(name)
            _check(path, archive, folder)
            archive.extractall(folder)
            yield _inner(folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise DamagedFile(f"{path}: cannot be unpacked ({error}). The zip is truncated or damaged.") from None


def _check(path: Path, archive: zipfile.ZipFile, folder: Path) -> None:
    members = archive.infolist()
    if len(members) > MOST_FILES:
        raise UnsafeFile(f"{path}: holds {len(members):,} files; no model has more than {MOST_FILES:,}")
    for member in members:
        inside = PurePosixPath(member.filename.replace("\\", "/"))
        if inside.is_absolute() or ".." in inside.parts or ":" in member.filename.split("/")[0]:
            raise UnsafeFile(f"{path}: {member.filename!r} would be unpacked outside its folder")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise UnsafeFile(f"{path}: {member.filename!r} is a link; a model has files only")
        if member.file_size > SLACK + RATIO * member.compress_size:
            raise UnsafeFile(
                f"{path}: {member.filename!r} would unpack from {member.compress_size:,} to {member.file_size:,} bytes"
            )
    total, free = sum(member.file_size for member in members), shutil.disk_usage(folder).free
    if total > free:
        raise UnsafeFile(f"{path}: unpacks to {total:,} bytes, and {folder.parent} has {free:,} free")


def _inner(folder: Path) -> Path:
    """The folder itself, or the one folder that it holds, as many zips have it."""
    inside = [entry for entry in folder.iterdir() if entry.name != "__MACOSX"]
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder

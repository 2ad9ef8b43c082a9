"""A model in a zip, unpacked to a temporary folder after its sizes and paths have been checked.

Knows: zip. Blind to: what the files are.
"""

from __future__ import annotations

import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from bilmo.errors import BilmoError, DamagedFile, UnsafeFile

MOST_FILES = 10_000
SLACK, RATIO = 1 << 26, 100
"""A zip may unpack to 64 MB plus a hundred times its own size; weights hardly compress."""


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Unpack a zip to a folder that is removed when the `with` block ends."""
    with tempfile.TemporaryDirectory(prefix="bilmo-") as name:
        folder = Path(name)
        try:
            with zipfile.ZipFile(path) as archive:
                _check(path, archive, folder)
                archive.extractall(folder)
        except BilmoError:
            raise
        except Exception as error:  # a damaged zip raises many kinds of errors
            raise DamagedFile(f"{path}: cannot be unpacked ({error}). The zip is truncated or damaged.") from None
        yield folder


def _check(path: Path, archive: zipfile.ZipFile, folder: Path) -> None:
    members = archive.infolist()
    if len(members) > MOST_FILES:
        raise UnsafeFile(f"{path}: contains {len(members):,} files; no model has more than {MOST_FILES:,}")
    for member in members:
        inside = PurePosixPath(member.filename.replace("\\", "/"))
        if inside.is_absolute() or ".." in inside.parts or ":" in member.filename.split("/")[0]:
            raise UnsafeFile(f"{path}: {member.filename!r} would be unpacked outside its folder")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise UnsafeFile(f"{path}: {member.filename!r} is a link; a model may contain only files")
    total, free = check_size(path, archive), shutil.disk_usage(folder).free
    if total > free:
        raise UnsafeFile(f"{path}: unpacks to {total:,} bytes, but {folder.parent} has only {free:,} free")


def check_size(path: Path, archive: zipfile.ZipFile) -> int:
    """The number of bytes that the zip unpacks to; refused if weights never compress that well."""
    total, packed = sum(member.file_size for member in archive.infolist()), path.stat().st_size
    if total > SLACK + RATIO * packed:
        raise UnsafeFile(f"{path}: would unpack from {packed:,} to {total:,} bytes, far more than weights can")
    return total


def inner(folder: Path) -> Path:
    """The folder itself, or the only folder in it, as in many zips."""
    inside = [entry for entry in folder.iterdir() if entry.name != "__MACOSX"]
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder

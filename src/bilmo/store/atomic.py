"""Write beside the target, then rename: a reader sees the old thing or the whole new one, never a part.

Knows: the file system. Blind to: what is written.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bilmo.errors import OutputError


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `target` when all went well and is removed when not."""
    with _writable(target):
        if target.is_symlink() or (target.exists() and not (target.is_dir() and not any(target.iterdir()))):
            raise OutputError(f"{target}: exists already. Choose another name, or remove it first.")
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    try:
        with _writable(target):
            yield partial
            for file in partial.iterdir():
                sync(file)
            partial.chmod(0o777 & ~umask())  # mkdtemp makes folders for the owner alone
            partial.rename(target)  # fails where another run was faster
            sync(target.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """A path to write a file at, which replaces `target` when all went well and is removed when not."""
    with _writable(target):
        if target.is_dir():
            raise OutputError(f"{target}: this is a folder. Name a file to write.")
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent)
    os.close(handle)
    partial = Path(name)
    try:
        with _writable(target):
            yield partial
            sync(partial)
            partial.chmod(0o666 & ~umask())
            partial.replace(target)
            sync(target.parent)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def _writable(target: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise OutputError(f"{target}: the folder {target.parent} does not exist. Make it first.") from None
    except OSError as error:
        raise OutputError(f"{target}: cannot be written ({error.strerror or error}).") from error


def sync(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def umask() -> int:
    """What this process does not let others do with its files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask

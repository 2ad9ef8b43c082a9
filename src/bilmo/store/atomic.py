"""Write under a temporary name, then rename: a reader sees the old file or the complete new one, never a part.

Knows: the file system. Blind to: what is written.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from bilmo.errors import DamagedFile, OutputError, WeightsError

PARTIAL = ".partial"
"""Ending of the temporary names, which begin with a dot. A process that is killed does not remove them."""
TEMPORARY = re.compile(r"\.(.*\.)?bilmo-[a-z0-9_]{8}" + re.escape(PARTIAL), re.DOTALL)
"""The temporary names, which no user would choose: files and folders of these names may be removed."""
CONFIG = "config.json"
"""The file of a folder that holds the hashes of the others, so `new_files` replaces it last."""
PUBLISH_SECONDS = 0.1
"""More than `new_files` takes from the first rename to the last."""

Config = TypeVar("Config")
Loaded = TypeVar("Loaded")


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to fill: it becomes `target` on success and is removed on failure."""
    with _naming(target, creating=True):
        if target.is_symlink() or (target.exists() and not (target.is_dir() and not any(target.iterdir()))):
            raise OutputError(f"{target}: already exists. Choose another name, or remove it first.")
        partial = _temporary(target)
        partial.mkdir()
    try:
        with _naming(target):
            yield partial
            for file in (*partial.rglob("*"), partial):
                sync(file)
            partial.rename(target)  # fails if another process made the target meanwhile
            sync(target.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """A path to write a file to: it replaces `target` on success and is removed on failure."""
    with _naming(target, creating=True):
        if target.is_dir():
            raise OutputError(f"{target}: this is a folder. Name a file to write.")
        partial = _temporary(target)
        partial.touch(exist_ok=False)
        mode = stat.S_IMODE(partial.stat().st_mode)
    try:
        with _naming(target):
            yield partial
            partial.chmod(mode)  # some writers replace the file by one that only the owner can read
            sync(partial)
            partial.replace(target)
            sync(target.parent)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def new_files(folder: Path) -> Iterator[Path]:
    """A folder to fill: on success its files replace those of the same names in `folder`, `config.json` last.

    Files in sub-folders are replaced in the same way. Other files in `folder` are kept. Ctrl-C between two files is
    raised after the last one, so weights and config always belong to the same model. Read the result with
    `read_published`.
    """
    with _naming(folder), tempfile.TemporaryDirectory(prefix=".bilmo-", suffix=PARTIAL, dir=folder) as name:
        yield Path(name)
        files = [file.relative_to(name) for file in Path(name).rglob("*") if file.is_file()]
        # Each config.json after the files whose hashes it holds, the one of the folder itself after all others.
        files.sort(key=lambda file: (file.name == CONFIG, -len(file.parts)))
        places = {(folder / file).parent for file in files}
        for place in places:
            place.mkdir(parents=True, exist_ok=True)
        for file in files:
            sync(Path(name, file))
        interrupted: KeyboardInterrupt | None = None
        while files:
            try:
                while files:
                    if Path(name, files[0]).exists():  # else Ctrl-C came after the rename
                        Path(name, files[0]).replace(folder / files[0])
                    del files[0]
            except KeyboardInterrupt as error:
                interrupted = error
        for place in places:
            sync(place)
        if interrupted is not None:
            raise interrupted


def read_published(read_config: Callable[[], Config], read: Callable[[Config], Loaded]) -> Loaded:
    """Read a folder into which a run may publish at the same time: `read` gets what `read_config` returned.

    Files that do not fit the config are read again if the config has changed meanwhile.
    """
    config = read_config()
    while True:
        try:
            return read(config)
        except (DamagedFile, WeightsError):
            time.sleep(PUBLISH_SECONDS)
            before, config = config, read_config()
            if config == before:
                raise


def _temporary(target: Path) -> Path:
    """A new name beside `target`, for what becomes `target` later."""
    return target.with_name(f".{target.name}.bilmo-{secrets.token_hex(4)}{PARTIAL}")


@contextmanager
def _naming(target: Path, *, creating: bool = False) -> Iterator[None]:
    """Turn errors of the operating system into ones that name the target."""
    try:
        yield
    except OSError as error:
        if creating and isinstance(error, FileNotFoundError):
            raise OutputError(unwritable_message(target)) from None
        raise OutputError(f"{target}: cannot be written ({error.strerror or error}).") from error


def unwritable_message(target: Path) -> str:
    """Why no file or folder can be made at `target`."""
    parent = target.parent
    if not parent.exists():
        return f"{target}: the folder {parent} does not exist. Create it first."
    if not parent.is_dir():
        return f"{target}: cannot be written: {parent} is not a folder. Choose another place."
    return f"{target}: cannot be written: the folder {parent} cannot hold new files. Choose another place."


def sync(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

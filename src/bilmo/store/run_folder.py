"""A folder that a run fills and can go on with: one run at a time, and nothing left of one that never began.

Knows: filelock, checked JSON. Blind to: what is trained.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout

from bilmo.errors import ConfigError, OutputError
from bilmo.store.model_folder import read_json

RUN, LOCK, LEFT = "run.json", "lock", ".*.partial"
CORPUS, CHECKPOINT = "corpus", "checkpoint.safetensors"
Run = TypeVar("Run")


@contextmanager
def alone(folder: Path, kind: str) -> Iterator[Path]:
    """The run's own part of the folder, while no other run uses it; `run.json` in it says that the run has begun.

    kind: what such a run is called, for whoever named a folder that is none.
    """
    work = folder / "training"
    try:
        str(folder).encode("utf-8")
    except UnicodeEncodeError:
        raise OutputError(
            f"{folder}: is no name in UTF-8, and no weights could be read from it. Choose another."
        ) from None
    if folder.exists() and not _ours(folder, work) and (folder.is_file() or any(folder.iterdir())):
        raise OutputError(f"{folder}: exists already and is no {kind}. Choose another name, or remove it first.")
    new = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        work.mkdir(parents=True, exist_ok=True)
        lock = FileLock(work / LOCK)
        lock.acquire(timeout=0)
    except Timeout:
        raise OutputError(f"{folder}: another run is at work in this folder. Wait for it, or choose another.") from None
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror})") from None
    for left in (*folder.glob(LEFT), *work.glob(LEFT)):  # of a run that was killed while it wrote
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    try:
        yield work
    finally:
        lock.release()
        if not (work / RUN).exists():  # it never came to training: leave nothing behind
            shutil.rmtree(work)
            for place in new:
                if not any(place.iterdir()):
                    place.rmdir()


def run_of(work: Path, file: type[Run], kind: str) -> Run | None:
    """What the run is that was begun here; None where none was."""
    if not (work / RUN).exists():
        return None
    try:
        return read_json(work / RUN, file)
    except ConfigError as error:
        raise OutputError(
            f"{work.parent}: holds no {kind} that can be gone on with. Choose another folder. ({error})"
        ) from None


def _ours(folder: Path, work: Path) -> bool:
    """Whether a run made this, so that what lies in it may be replaced; `training` is a name that others use too."""
    if not work.is_dir():
        return False
    if (work / RUN).exists():
        return True
    return all(entry == work or entry.match(LEFT) for entry in folder.iterdir()) and all(
        entry.name == LOCK or entry.match(LEFT) or (entry.name == CORPUS and (entry / "facts.json").exists())
        for entry in work.iterdir()
    )

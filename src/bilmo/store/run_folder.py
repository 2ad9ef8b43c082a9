"""A folder that a run fills and can go on with: one run at a time, and nothing left of one that never began.

Knows: filelock. Blind to: what is trained.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from bilmo.errors import OutputError

RUN, LOCK, LEFT = "run.json", "lock", ".*.partial"
CORPUS = "corpus"


@contextmanager
def alone(folder: Path, kind: str) -> Iterator[Path]:
    """The run's own part of the folder, while no other run uses it; `run.json` in it says that the run has begun.

    kind: what such a run is called, for whoever named a folder that is none.
    """
    work = folder / "training"
    if folder.exists() and not _ours(work) and (folder.is_file() or any(folder.iterdir())):
        raise OutputError(f"{folder}: exists already and is no {kind}. Choose another name, or remove it first.")
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
            if not any(folder.iterdir()):
                folder.rmdir()


def _ours(work: Path) -> bool:
    """Whether a run made this, so that what lies in it may be removed; `training` is a name that others use too."""
    if not work.is_dir():
        return False
    begun = (work / RUN).exists()
    return begun or all(
        entry.name == LOCK or entry.match(LEFT) or (entry.name == CORPUS and (entry / "facts.json").exists())
        for entry in work.iterdir()
    )

"""The layers of a data set, computed once: float16 on disk, mapped into memory, shared by all runs over the same text.

A file is named by a hash of the model and the sentences. It is written under another name and then renamed, so that a
run sees a whole file or none; with a lock, two runs that need the same layers compute them once. When the folder grows
beyond its limit, the least recently used files are removed first; a run that has one of them mapped can still read it.

Knows: Embedder, numpy, the file system. Blind to: tasks, tensors.
"""

# N tokens of all sentences, T tokens of one, L layers, W width of a vector

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from bilmo.embed.embedder import Embedder
from bilmo.embed.texts import gathered
from bilmo.errors import ConfigError, OutputError, WeightsError
from bilmo.ids.batch import Sentence
from bilmo.store.atomic import PARTIAL, new_file
from bilmo.store.user_folders import cache_folder

Half = NDArray[np.float16]
BATCH_TOKENS = 8192
"""About how many tokens are computed in one call."""
LIMIT_GB = 20.0
TRIES = 4
LOCK = ".lock"
POLL = 0.5
"""Seconds between two attempts to get a lock."""


class Computed(NamedTuple):
    """How many sentences of a data set are done."""

    done: int
    total: int


@dataclass(frozen=True)
class Waiting:
    """Another run computes the same layers; repeated until it ends."""


def _limit_bytes() -> float:
    given = os.environ.get("BILMO_CACHE_GB", str(LIMIT_GB))
    try:
        return float(given) * 1e9
    except ValueError:
        raise ConfigError(f"BILMO_CACHE_GB is {given!r}; it must be a number of gigabytes") from None


class LayerStore:
    """The layers of sentences: read where they are stored, else computed.

    They are rounded to float16 in both cases, so that a task predicts the same with stored layers and without.
    """

    def __init__(self, elmo: Embedder, folder: Path | None = None) -> None:
        self.elmo = elmo
        self.model = elmo.bundle.identity()
        self.shape = (elmo.config.layers + 1, elmo.config.vector_width)
        """(L+1, W) of one token."""
        self._folder = folder or cache_folder("layers")
        self._stored: dict[tuple[str, ...], Half] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the layers, which are read from disk again or recomputed."""
        return self.__dict__ | {"_stored": {}}

    def layers(self, sentences: Sequence[Sentence]) -> list[Half]:
        """For each sentence (T, L+1, W)."""
        missing = [sentence for sentence in sentences if tuple(sentence) not in self._stored]
        computed = iter(self._compute(missing) if missing else [])
        found = [self._stored.get(tuple(sentence)) for sentence in sentences]
        return [next(computed) if values is None else values for values in found]

    def _compute(self, sentences: Sequence[Sentence]) -> list[Half]:
        with np.errstate(over="ignore"):  # reported below
            halves = [values.transpose(1, 0, 2).astype(np.float16) for values in self.elmo.layers(sentences)]
        if not all(np.isfinite(values).all() for values in halves):
            raise WeightsError("this model computes values that are not finite or too large for float16")
        return halves

    def fill(self, sentences: Sequence[Sentence]) -> Generator[Computed | Waiting, None, None]:
        """Read the layers of a data set from disk, or compute and write them, or wait for a run that does."""
        distinct = list(dict.fromkeys(tuple(sentence) for sentence in sentences))
        tokens = sum(map(len, distinct))
        if not tokens:
            return
        shape = (tokens, *self.shape)
        text = json.dumps([self.model, self.elmo.start, distinct])
        path = self._folder / f"{hashlib.sha256(text.encode()).hexdigest()[:40]}.npy"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            values = _opened(path, shape)
            if values is None:
                values = yield from self._locked_fill(path, distinct, shape)
        except (OSError, OutputError) as error:
            cause = error.__cause__ or error  # the error of `new_file` names a temporary file
            raise OutputError(
                f"{self._folder}: layers cannot be stored here ({getattr(cause, 'strerror', None) or cause}). "
                "Choose another folder with --cache, cache= in Python, or BILMO_CACHE."
            ) from None
        at = 0
        for sentence in distinct:
            self._stored[sentence] = values[at : at + len(sentence)]
            at += len(sentence)

    def _locked_fill(
        self, path: Path, sentences: list[tuple[str, ...]], shape: tuple[int, ...]
    ) -> Generator[Computed | Waiting, None, Half]:
        """Compute and write the layers, while no other run does."""
        while (lock := _try_lock(path.with_suffix(LOCK))) is None:
            yield Waiting()
            time.sleep(POLL)
        try:
            for _ in range(TRIES):  # another run that needs the space may remove the file before it is opened
                values = _opened(path, shape)
                if values is not None:
                    return values
                _clear(self._folder, path)
                _make_space(self._folder, math.prod(shape) * 2)
                yield from self._write(path, sentences, shape)
            raise OutputError(f"{path.name} was missing or unreadable {TRIES} times right after it was written")
        finally:
            _unlock(lock)

    def _write(self, path: Path, sentences: list[tuple[str, ...]], shape: tuple[int, ...]) -> Iterator[Computed]:
        # Plain writes: a full disk is an error here, but would end the process in mapped memory.
        with new_file(path) as partial, partial.open("wb") as file:
            header = {"descr": "<f2", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            done = 0
            for some, _ in gathered(((sentence, [sentence]) for sentence in sentences), BATCH_TOKENS):
                for one in self._compute(some):
                    file.write(one.astype("<f2", copy=False).tobytes())
                done += len(some)
                yield Computed(done, len(sentences))


def _try_lock(path: Path) -> FileLock | None:
    """A lock that is held from now on; None where another run holds it."""
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return None
    if path.exists():
        return lock
    lock.release()  # the run that held it has just ended and removed the file: a new run would not see this lock
    return None


def _unlock(lock: FileLock) -> None:
    """Release a lock and remove its file."""
    with suppress(OSError):  # a system that does not remove open files keeps it
        Path(lock.lock_file).unlink()
    lock.release()


def _opened(path: Path, shape: tuple[int, ...]) -> Half | None:
    """A file written before; None where there is none, or where its content does not match its name."""
    try:
        values = np.load(path, mmap_mode="r")
        os.utime(path)  # used now, so it is removed last
    except (OSError, ValueError, EOFError):
        return None
    return np.asarray(values) if values.shape == shape and values.dtype == np.float16 else None


def _clear(folder: Path, path: Path) -> None:
    """Remove partial files and locks of runs that were killed; a run that is still writing holds its lock."""
    names = {left.name[1:].partition(".npy.")[0] for left in folder.glob(f".*{PARTIAL}")}
    for name in names | {lock.stem for lock in folder.glob(f"*{LOCK}")}:
        lock = None if name == path.stem else _try_lock(folder / f"{name}{LOCK}")
        if lock is None and name != path.stem:  # this run holds the lock of its own file
            continue
        for left in folder.glob(f".{name}.npy.*{PARTIAL}"):
            left.unlink(missing_ok=True)
        if lock is not None:
            _unlock(lock)


def _make_space(folder: Path, needed: int) -> None:
    """Remove the least recently used files until the others and the new one are within the limit."""
    limit = _limit_bytes()
    if needed > limit:
        raise ConfigError(
            f"the layers of this data set need {needed / 1e9:.1f} GB; the limit of {folder} is {limit / 1e9:.1f} GB. "
            "Raise BILMO_CACHE_GB, or use fewer examples."
        )
    files = []
    for file in (*folder.glob("*.npy"), *folder.glob(f".*{PARTIAL}")):
        try:
            files.append((file.stat().st_mtime, file.stat().st_size, file))
        except FileNotFoundError:  # another run removed it
            continue
    total = sum(size for _, size, _ in files)
    for _, size, file in sorted(files):
        if file.suffix == PARTIAL:  # another run is writing it
            continue
        if total + needed <= limit:
            break
        try:
            file.unlink()
        except FileNotFoundError:
            pass
        except PermissionError:  # another run has it mapped, and the system does not allow it
            continue
        total -= size

"""Layers of a data set, computed once: float16 on disk, mapped into memory, shared by every run over the same text.

A file is named by the model and the sentences in it. It is written beside and then renamed, so that a run sees a
whole file or none; a lock lets two runs that need the same layers compute them once. When the folder grows beyond
its bound, the files that were not used for longest go first; a run that has one of them mapped keeps it.

Knows: Embedder, numpy, the file system. Blind to: tasks, tensors.
"""

# N tokens of all sentences, T tokens of one, L layers, W width of a vector

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from bilmo.embed.embedder import Embedder
from bilmo.errors import ConfigError, OutputError, WeightsError
from bilmo.ids.batch import Sentence
from bilmo.store.atomic import new_file

Half = NDArray[np.float16]
AT_ONCE = 8192
"""Tokens, about, whose layers are computed in one call."""
MOST_GB = 20.0
TRIES = 4


def default_folder() -> Path:
    """BILMO_CACHE, or the user's folder for such files."""
    given = os.environ.get("BILMO_CACHE")
    if given:
        return Path(given) / "layers"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bilmo" / "layers"


def _most_bytes() -> float:
    given = os.environ.get("BILMO_CACHE_GB", str(MOST_GB))
    try:
        return float(given) * 1e9
    except ValueError:
        raise ConfigError(f"BILMO_CACHE_GB is {given!r}; needed is a number of gigabytes") from None


class LayerStore:
    """Layers of sentences: looked up where they were kept, computed where not.

    Both ways they are rounded to float16, so that a task gives the same answers with kept layers and without.
    """

    def __init__(self, elmo: Embedder, folder: Path | None = None) -> None:
        self.elmo = elmo
        self.model = elmo.bundle.identity()
        self._folder = folder or default_folder()
        self._kept: dict[tuple[str, ...], Half] = {}

    def __getstate__(self) -> dict[str, Any]:
        """All but the layers, which are found again on disk or computed."""
        return self.__dict__ | {"_kept": {}}

    @property
    def shape(self) -> tuple[int, int]:
        """(L+1, W) of a token."""
        return self.elmo.config.layers + 1, self.elmo.config.vector_width

    def layers(self, sentences: Sequence[Sentence]) -> list[Half]:
        """For each sentence (T, L+1, W)."""
        found = [self._kept.get(tuple(sentence)) for sentence in sentences]
        missing = [k for k, values in enumerate(found) if values is None]
        computed = dict(zip(missing, self._compute([sentences[k] for k in missing]), strict=True))
        return [computed[k] if values is None else values for k, values in enumerate(found)]

    def _compute(self, sentences: Sequence[Sentence]) -> list[Half]:
        with np.errstate(over="ignore"):  # told below
            halves = [values.transpose(1, 0, 2).astype(np.float16) for values in self.elmo.layers(sentences)]
        if not all(np.isfinite(values).all() for values in halves):
            raise WeightsError("this model gives values that float16 cannot hold, or that are no numbers at all")
        return halves

    def keep(self, sentences: Sequence[Sentence]) -> Iterator[tuple[int, int]]:
        """Compute the layers of a data set, or find them on disk; tells (done, all) as it goes."""
        distinct = list(dict.fromkeys(tuple(sentence) for sentence in sentences))
        tokens = sum(map(len, distinct))
        if not tokens:
            return
        depth, width = self.shape
        text = json.dumps([self.model, self.elmo.start, distinct])
        path = self._folder / f"{hashlib.sha256(text.encode()).hexdigest()[:40]}.npy"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with FileLock(path.with_suffix(".lock")):
                for _ in range(TRIES):  # again where another run, which needs the room, removes it before it is opened
                    values = _opened(path, (tokens, depth, width))
                    if values is not None:
                        break
                    _clear(self._folder, path)
                    _make_room(self._folder, tokens * depth * width * 2)
                    yield from self._write(path, distinct, tokens)
                else:
                    raise OutputError(f"{path.name} was gone or unreadable {TRIES} times, as soon as it was written")
        except (OSError, OutputError) as error:
            cause = error.__cause__ or error  # what `new_file` made of it names a file that nobody knows
            raise OutputError(
                f"{self._folder}: layers cannot be kept there ({getattr(cause, 'strerror', None) or cause}). "
                "Name a place that has room with --cache, cache= in Python, or BILMO_CACHE."
            ) from None
        at = 0
        for sentence in distinct:
            self._kept[sentence] = values[at : at + len(sentence)]
            at += len(sentence)

    def _write(self, path: Path, sentences: list[tuple[str, ...]], tokens: int) -> Iterator[tuple[int, int]]:
        # Plain writes: a full disk is an error there, and the end of the process in mapped memory.
        with new_file(path) as partial, partial.open("wb") as file:
            header = {"descr": "<f2", "fortran_order": False, "shape": (tokens, *self.shape)}
            np.lib.format.write_array_header_1_0(file, header)
            done = 0
            for some in _groups(sentences):
                for one in self._compute(some):
                    file.write(one.astype("<f2", copy=False).tobytes())
                done += len(some)
                yield done, len(sentences)


def _groups(sentences: list[tuple[str, ...]]) -> Iterator[list[tuple[str, ...]]]:
    group: list[tuple[str, ...]] = []
    tokens = 0
    for sentence in sentences:
        if group and tokens + len(sentence) > AT_ONCE:
            yield group
            group, tokens = [], 0
        group.append(sentence)
        tokens += len(sentence)
    if group:
        yield group


def _opened(path: Path, shape: tuple[int, ...]) -> Half | None:
    """A file that was kept before; None where there is none, or one that is not what its name says."""
    try:
        values = np.load(path, mmap_mode="r")
        os.utime(path)  # used now: the last to go
    except (OSError, ValueError, EOFError):
        return None
    return np.asarray(values) if values.shape == shape and values.dtype == np.float16 else None


def _clear(folder: Path, path: Path) -> None:
    """Remove what runs left that were killed while they wrote; one that still writes holds the lock of its file."""
    for left in folder.glob(".*.partial"):
        target = folder / left.name[1:].partition(".npy.")[0]
        try:
            if target.name == path.stem:  # whose lock this run holds
                left.unlink(missing_ok=True)
                continue
            with FileLock(target.with_suffix(".lock"), timeout=0):
                left.unlink(missing_ok=True)
        except Timeout:
            continue


def _make_room(folder: Path, needed: int) -> None:
    """Remove what was not used for longest, until the rest and the new file are within the bound."""
    most = _most_bytes()
    if needed > most:
        raise ConfigError(
            f"the layers of this data set need {needed / 1e9:.1f} GB, and {folder} may grow to {most / 1e9:.1f} GB. "
            "Set BILMO_CACHE_GB to more, or use fewer examples."
        )
    kept = []
    for file in (*folder.glob("*.npy"), *folder.glob(".*.partial")):
        try:
            kept.append((file.stat().st_mtime, file.stat().st_size, file))
        except FileNotFoundError:  # another run was faster
            continue
    total = sum(size for _, size, _ in kept)
    for _, size, file in sorted(kept):
        if file.suffix == ".partial":  # it counts, but somebody is writing it
            continue
        if total + needed <= most:
            break
        try:
            file.unlink()
        except FileNotFoundError:
            pass
        except PermissionError:  # another run has it mapped, on a system that minds
            continue
        total -= size

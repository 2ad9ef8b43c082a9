"""A long run's results, kept in parts beside the file to come, so that a run that was stopped can go on.

    .NAME.parts/
      lock         held while a run is at work here
      run.json     what the run is: it can go on only as that
      00000.part   finished parts, each written beside and renamed when whole
      made/        what they are put together to, before it is moved to its place

Knows: zip, filelock, writing beside. Blind to: how vectors are made.
"""

from __future__ import annotations

import json
import math
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.lib import format as npy
from numpy.typing import NDArray

from bilmo.embed.output.npy import write_array
from bilmo.embed.output.table import Form, Row, Table
from bilmo.errors import ConfigError, OutputError
from bilmo.store.atomic import new_file

LOCK, RUN, MADE = "lock", "run.json", "made"
VECTORS, ROWS, STATE = "vectors.npy", "rows.json", "state/"


class Part:
    """A part that is being written: vectors go to the file at once, so that only their sentences stay in memory."""

    def __init__(self, file: IO[bytes], form: Form, numbers: int) -> None:
        self._file, self._form = file, form
        self.rows: list[tuple[str, list[str]]] = []
        self.state: Mapping[str, NDArray[Any]] = {}
        """What the next part goes on from."""
        write_array(file, (numbers,), form.dtype, [])

    def add(self, rows: Sequence[Row]) -> None:
        """Some sentences more."""
        for row in rows:
            self._file.write(np.ascontiguousarray(row.vectors, dtype=self._form.dtype).data)
            self.rows.append((row.text, row.tokens))


class Parts:
    """The finished parts of one run, in order."""

    def __init__(self, folder: Path, form: Form) -> None:
        self.folder, self.form = folder, form
        self.files: list[Path] = []
        self.sentences = self.tokens = 0
        found = sorted(folder.glob("*.part"))
        try:
            for file in found:
                self._count(file)
        except (zipfile.BadZipFile, ValueError):  # a disk that lost what it said it had written
            for file in found[len(self.files) :]:  # a part goes on from the one before, so later ones are no use
                file.unlink()

    @contextmanager
    def new(self, lengths: Sequence[int]) -> Iterator[Part]:
        """A part to fill with sentences of these many tokens; it is kept when all went well."""
        path = self.folder / f"{len(self.files):05}.part"
        with new_file(path) as partial, zipfile.ZipFile(partial, "w") as archive:
            with archive.open(VECTORS, "w", force_zip64=True) as file:
                numbers = sum(math.prod(self.form.shape(length)) for length in lengths)
                part = Part(file, self.form, numbers)
                yield part
            archive.writestr(ROWS, json.dumps(part.rows))
            for name, value in part.state.items():
                with archive.open(f"{STATE}{name}.npy", "w") as file:
                    write_array(file, value.shape, value.dtype.name, [value])
            archive.comment = json.dumps({"sentences": len(lengths), "tokens": sum(lengths)}).encode("ascii")
        self._count(path)

    def _count(self, path: Path) -> None:
        """Take a finished part into account."""
        with zipfile.ZipFile(path) as archive:
            facts = json.loads(archive.comment)
        self.files.append(path)
        self.sentences += facts["sentences"]
        self.tokens += facts["tokens"]

    def state(self) -> dict[str, NDArray[Any]]:
        """What was kept with the last part."""
        if not self.files:
            return {}
        with np.load(self.files[-1]) as file:
            return {name.removeprefix(STATE): file[name] for name in file.files if name.startswith(STATE)}

    def table(self) -> Table:
        """All rows of all parts."""
        return Table(self.form, self._rows, self.sentences, self.tokens)

    @contextmanager
    def together(self, target: Path) -> Iterator[Path]:
        """A path to put all parts together at; it becomes `target`, and what was made beside it goes along.

        It is among the parts, so that a run that is killed leaves nothing where nobody looks.
        """
        shutil.rmtree(self.folder / MADE, ignore_errors=True)
        (self.folder / MADE).mkdir()
        yield self.folder / MADE / target.name
        made = sorted((self.folder / MADE).iterdir(), key=lambda file: file.name == target.name)
        for file in made:  # the target last
            file.replace(target.with_name(file.name))

    def _rows(self) -> Iterator[Row]:
        kind = np.dtype(self.form.dtype)
        for path in self.files:
            with zipfile.ZipFile(path) as archive, archive.open(VECTORS) as file:
                npy.read_magic(file)
                npy.read_array_header_1_0(file)
                for text, tokens in json.loads(archive.read(ROWS)):
                    shape = self.form.shape(len(tokens))
                    raw = file.read(math.prod(shape) * kind.itemsize)
                    yield Row(text, tokens, np.frombuffer(raw, kind).reshape(shape))


def folder_of(target: Path) -> Path:
    """Where the parts of a file to come are kept."""
    return target.with_name(f".{target.name}.parts")


@contextmanager
def parts_of(target: Path, form: Form, run: Mapping[str, str] | None) -> Iterator[Parts]:
    """The parts of the run that makes `target`, while no other run is at work on it.

    run: what identifies it. Parts of the same run are gone on from; those of another are an error. None is a run that
        can never be done again, so nothing is gone on from and nothing is kept.

    When all went well the parts are removed; otherwise finished ones stay.
    """
    folder = folder_of(target)
    lock = _alone(target, folder)
    done = False
    try:
        if run is None:
            _clear(folder)
        else:
            _same_run(target, folder, run)
        yield Parts(folder, form)
        done = True
    finally:
        if done or run is None or not any(folder.glob("*.part")):
            shutil.rmtree(folder)
        lock.release()


def _alone(target: Path, folder: Path) -> FileLock:
    lock = FileLock(folder / LOCK)
    while True:
        try:
            folder.mkdir(exist_ok=True)
            lock.acquire(timeout=0)
        except Timeout:
            raise OutputError(
                f"{target}: another run is writing this file now. Wait for it, or choose another name."
            ) from None
        except FileNotFoundError:
            if not target.parent.is_dir():
                raise OutputError(f"{target}: the folder {target.parent} does not exist. Make it first.") from None
        except OSError as error:
            raise OutputError(f"{target}: cannot be written ({error.strerror or error}).") from None
        else:
            if (folder / LOCK).exists():
                return lock
            lock.release()  # a run that ended just now took the folder away with its lock


def _clear(folder: Path) -> None:
    shutil.rmtree(folder / MADE, ignore_errors=True)
    for file in folder.iterdir():
        if file.name != LOCK:
            file.unlink()


def _same_run(target: Path, folder: Path, run: Mapping[str, str]) -> None:
    """Check that what lies here is of this run, or begin it."""
    try:
        was = json.loads((folder / RUN).read_bytes())
    except (OSError, ValueError):
        was = None
    if was is None:
        _clear(folder)
        with new_file(folder / RUN) as partial:
            partial.write_text(json.dumps(dict(run), indent=1), encoding="utf-8")
        return
    for leftover in folder.glob(".*.partial"):  # of a part that was being written when the run was killed
        leftover.unlink()
    changed = [
        f"  {name} was {was.get(name, 'not set')}, is {run.get(name, 'not set')}"
        for name in sorted({*was, *run})
        if was.get(name) != run.get(name)
    ]
    if changed:
        raise ConfigError(
            f"{target}: a run with other settings was begun and not finished.\n"
            + "\n".join(changed)
            + f"\nUse the same settings to go on with it, or remove {folder} to begin anew."
        )

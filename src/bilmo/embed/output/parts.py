"""Vectors computed so far, in parts beside the output file, so that a run that was stopped can be resumed.

    .NAME.parts/
      run.json, bilmo.lock   see `store.run`
      00000.part             finished parts, in order
      joined/                the output file while the parts are joined

Knows: zip, runs, atomic writes. Blind to: how vectors are made.
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
from numpy.lib import format as npy
from numpy.typing import NDArray

from bilmo.embed.output.npy import write_array
from bilmo.embed.output.table import EmbeddedText, Table, VectorSpec
from bilmo.errors import OutputError
from bilmo.store.atomic import new_file, sync, unwritable_message
from bilmo.store.run import Identity, Run, open_run

JOINED = "joined"
VECTORS, ROWS, STATE = "vectors.npy", "rows.json", "state/"


class Part:
    """A part that is being written. Vectors go to the file at once; only texts and tokens stay in memory."""

    def __init__(self, file: IO[bytes], spec: VectorSpec, numbers: int) -> None:
        self._file, self._spec = file, spec
        self.rows: list[tuple[str, list[str]]] = []
        self.state: Mapping[str, NDArray[Any]] = {}
        """The recurrent state after the part, from which the next one continues."""
        write_array(file, (numbers,), spec.dtype, [])

    def add(self, texts: Sequence[EmbeddedText]) -> None:
        """Append some texts."""
        for text in texts:
            self._file.write(np.ascontiguousarray(text.vectors, dtype=self._spec.dtype).data)
            self.rows.append((text.text, text.tokens))


class Parts:
    """The finished parts of one run, in order."""

    def __init__(self, run: Run, spec: VectorSpec) -> None:
        self._run, self.spec = run, spec
        self.files: list[Path] = []
        self.sentences = self.tokens = 0
        found = sorted(run.work.glob("*.part"))
        try:
            for file in found:
                self._count(file)
        except (zipfile.BadZipFile, ValueError):  # a disk that lost what it had confirmed
            for file in found[len(self.files) :]:  # later parts are useless: each continues the one before
                file.unlink()

    @contextmanager
    def new(self, lengths: Sequence[int]) -> Iterator[Part]:
        """A part to fill with texts of these numbers of tokens; it is kept on success."""
        path = self._run.work / f"{len(self.files):05}.part"
        with new_file(path) as partial:
            with zipfile.ZipFile(partial, "w") as archive:
                with archive.open(VECTORS, "w", force_zip64=True) as file:
                    numbers = sum(math.prod(self.spec.shape(length)) for length in lengths)
                    part = Part(file, self.spec, numbers)
                    yield part
                archive.writestr(ROWS, json.dumps(part.rows))
                for name, value in part.state.items():
                    with archive.open(f"{STATE}{name}.npy", "w") as file:
                        write_array(file, value.shape, value.dtype.name, [value])
                archive.comment = json.dumps({"sentences": len(lengths), "tokens": sum(lengths)}).encode("ascii")
            self._run.start()  # there is something to resume from
        self._count(path)

    def _count(self, path: Path) -> None:
        """Add a finished part."""
        with zipfile.ZipFile(path) as archive:
            facts = json.loads(archive.comment)
        self.files.append(path)
        self.sentences += facts["sentences"]
        self.tokens += facts["tokens"]

    def state(self) -> dict[str, NDArray[Any]]:
        """The recurrent state after the last part."""
        if not self.files:
            return {}
        with np.load(self.files[-1]) as file:
            return {name.removeprefix(STATE): file[name] for name in file.files if name.startswith(STATE)}

    def table(self) -> Table:
        """All texts of all parts."""
        return Table(self.spec, self._rows, self.sentences, self.tokens)

    @contextmanager
    def join(self, target: Path) -> Iterator[Path]:
        """A path to write all parts to; it becomes `target`, and files written beside it move along.

        It is in the work folder, so that a process that is killed leaves nothing elsewhere. When all is done, the
        parts are removed.
        """
        folder = self._run.work / JOINED
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        yield folder / target.name
        for file in sorted(folder.iterdir(), key=lambda file: file.name == target.name):  # the target last
            file.replace(target.with_name(file.name))
        sync(target.parent)  # the parts are removed only when the file is on the disk
        self._run.remove()

    def _rows(self) -> Iterator[EmbeddedText]:
        kind = np.dtype(self.spec.dtype)
        for path in self.files:
            with zipfile.ZipFile(path) as archive, archive.open(VECTORS) as file:
                npy.read_magic(file)
                npy.read_array_header_1_0(file)
                for text, tokens in json.loads(archive.read(ROWS)):
                    shape = self.spec.shape(len(tokens))
                    raw = file.read(math.prod(shape) * kind.itemsize)
                    yield EmbeddedText(text, tokens, np.frombuffer(raw, kind).reshape(shape))


def folder_of(target: Path) -> Path:
    """The folder for the parts of an output file."""
    return target.with_name(f".{target.name}.parts")


@contextmanager
def open_parts(target: Path, spec: VectorSpec, identity: Identity | None) -> Iterator[Parts]:
    """The parts of the run that makes `target`; see `open_run` for the rules.

    The finished parts stay until they are joined.
    """
    if not target.parent.is_dir():
        raise OutputError(unwritable_message(target))
    with open_run(target, folder_of(target), kind="embedding run", identity=identity) as run:
        yield Parts(run, spec)

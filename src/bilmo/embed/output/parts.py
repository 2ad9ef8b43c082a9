"""Vectors computed so far, in parts beside the output file, so that a run that was stopped can be resumed.

    .NAME.parts/
      run.json, bilmo.lock   see `store.run`
      000000000000.part      finished parts, named by the number of their first text
      joined/                the output file while the parts are joined
      published.json         hashes of the files that are written beside the output file

A part is a zip. Its comment says what it holds, and ends with the SHA-256 of all bytes before: a part that is missing
or damaged is computed again, and so are those after it if each continues from the state of the one before. Otherwise
parts may be finished in any order, by several processes.

Knows: zip, runs, atomic writes. Blind to: how vectors are made.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import zipfile
from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from bilmo.embed.output.npy import write_array
from bilmo.embed.output.table import EmbeddedText, Table, VectorSpec
from bilmo.errors import BilmoError, DamagedFile, OutputError
from bilmo.store.atomic import new_file, sync, unwritable_message
from bilmo.store.run import Identity, Run, open_run
from bilmo.store.validate import checked, parse_json, sha256_of

JOINED, PUBLISHED = "joined", "published.json"
PARTS = "[0-9][0-9][0-9][0-9][0-9]*.part"
"""The names of parts."""
VECTORS, ROWS, STATE = "vectors.npy", "rows.json", "state/"
HASH_LENGTH = 64
"""Characters of the hash at the end of a part."""


@dataclass(frozen=True, order=True)
class Facts:
    """The content of a part."""

    first: int
    """Number of its first text, from 0."""
    sentences: int
    tokens: int
    text: str
    """A fingerprint of all texts from the first part to the end of this one."""


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

    def __init__(self, run: Run, spec: VectorSpec, *, overwrite: bool = False, ordered: bool = False) -> None:
        """`overwrite`: the files that are written may replace files that exist. `ordered`: see `open_parts`."""
        self._run, self.spec, self._overwrite, self._ordered = run, spec, overwrite, ordered
        self.facts: list[Facts] = []
        """Of the finished parts, in the order of the text."""
        for path in sorted(run.work.glob(PARTS)):
            if path.is_dir():
                raise OutputError(
                    f"{path}: is a folder, but bilmo writes a file of this name. Rename it, or remove it."
                )
            facts = _read_facts(path)
            if facts is None or self.path(facts) != path or (ordered and facts.first != self.sentences):
                path.unlink()
            else:
                insort(self.facts, facts)

    @property
    def files(self) -> list[Path]:
        """The finished parts."""
        return [self.path(facts) for facts in self.facts]

    @property
    def sentences(self) -> int:
        """Number of texts in all parts."""
        return sum(facts.sentences for facts in self.facts)

    @property
    def tokens(self) -> int:
        """Number of tokens in all parts."""
        return sum(facts.tokens for facts in self.facts)

    def path(self, facts: Facts) -> Path:
        """The file of a part."""
        return self._run.work / f"{facts.first:012}.part"

    def drop(self, facts: Facts) -> None:
        """Remove a part, and those after it if each continues the one before."""
        at = self.facts.index(facts)
        for useless in self.facts[at : None if self._ordered else at + 1]:
            self.path(useless).unlink()
            self.facts.remove(useless)

    @contextmanager
    def new(self, facts: Facts) -> Iterator[Part]:
        """A part to fill; it is kept on success."""
        with new_part(self.path(facts), self.spec, facts) as part:
            yield part
        self.add(facts)

    def start(self) -> None:
        """Make the run resumable. This is called before the first part; without parts, nothing is kept."""
        self._run.start()

    def add(self, facts: Facts) -> None:
        """A part is finished, by this or another process."""
        self.start()
        insort(self.facts, facts)

    def state(self) -> dict[str, NDArray[Any]]:
        """The recurrent state after the last part."""
        if not self.facts:
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
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)
        folder.mkdir()
        try:
            yield folder / target.name
        except OutputError as error:
            said = str(error).replace(str(folder / target.stem), str(target.with_name(target.stem)))
            kept = " Finished parts are kept; the same command resumes the run." if self._run.resumable else ""
            raise OutputError(f"{said}{kept}") from error
        files = {file.name: file for file in folder.iterdir()}
        beside = [target.with_name(name) for name in files if name != target.name]
        self.check_beside(target, beside)
        if beside:
            with new_file(self._run.work / PUBLISHED) as partial:
                hashes = {path.name: sha256_of(files[path.name]) for path in beside}
                partial.write_text(json.dumps(hashes), encoding="utf-8")
        for path in (*beside, target):  # the target last
            files[path.name].replace(path)
        sync(target.parent)  # the parts are removed only when the file is on the disk
        self._run.remove()

    def check_beside(self, target: Path, beside: Sequence[Path]) -> None:
        """Refuse to replace files that are written beside `target`, unless this run has published them itself."""
        if self._overwrite:
            return
        try:
            ours = checked(parse_json(self._run.work / PUBLISHED), dict[str, str], PUBLISHED)
        except BilmoError:  # there are none
            ours = {}
        for path in beside:
            if os.path.lexists(path) and not (path.is_file() and sha256_of(path) == ours.get(path.name)):
                raise OutputError(
                    f"{path}: already exists, and would be replaced, because it is written together with {target}. "
                    "Rename it, remove it, choose another name for the output, or replace both with --overwrite."
                )

    def _rows(self) -> Iterator[EmbeddedText]:
        kind = np.dtype(self.spec.dtype)
        for path in self.files:
            with _reading(path), zipfile.ZipFile(path) as archive, archive.open(VECTORS) as file:
                npy.read_magic(file)
                npy.read_array_header_1_0(file)
                for text, tokens in json.loads(archive.read(ROWS)):
                    shape = self.spec.shape(len(tokens))
                    raw = file.read(math.prod(shape) * kind.itemsize)
                    yield EmbeddedText(text, tokens, np.frombuffer(raw, kind).reshape(shape))


@contextmanager
def new_part(path: Path, spec: VectorSpec, facts: Facts) -> Iterator[Part]:
    """A part to fill with the texts that `facts` describes; the file appears on success."""
    with new_file(path) as partial:
        with zipfile.ZipFile(partial, "w") as archive:
            with archive.open(VECTORS, "w", force_zip64=True) as file:
                size = spec.bytes(sentences=facts.sentences, tokens=facts.tokens)
                part = Part(file, spec, size // np.dtype(spec.dtype).itemsize)
                yield part
            archive.writestr(ROWS, json.dumps(part.rows))
            for name, value in part.state.items():
                with archive.open(f"{STATE}{name}.npy", "w") as file:
                    write_array(file, value.shape, value.dtype.name, [value])
            archive.comment = json.dumps(asdict(facts)).encode("ascii") + b"0" * HASH_LENGTH
        _seal(partial)


def _seal(path: Path) -> None:
    """Replace the end of a part by the hash of everything before it."""
    with path.open("r+b") as file:
        file.seek(-HASH_LENGTH, os.SEEK_END)
        end = file.tell()
        digest = _hash(file, end)
        file.seek(end)
        file.write(digest)


def _hash(file: IO[bytes], end: int) -> bytes:
    """The SHA-256 of the first `end` bytes."""
    digest = hashlib.sha256()
    file.seek(0)
    while end and (some := file.read(min(end, 1 << 20))):
        digest.update(some)
        end -= len(some)
    return digest.hexdigest().encode("ascii")


def _read_facts(path: Path) -> Facts | None:
    """The content of a finished part; None if it is missing or damaged."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, os.SEEK_END) - HASH_LENGTH
            if end < 0 or _hash(file, end) != file.read(HASH_LENGTH):
                return None
        with zipfile.ZipFile(path) as archive:
            return Facts(**json.loads(archive.comment[:-HASH_LENGTH]))
    except (OSError, ValueError, TypeError, zipfile.BadZipFile):
        return None


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Report a part that was damaged after the run began."""
    try:
        yield
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DamagedFile(
            f"{path}: was damaged during the run ({error}). Run the same command again; this part is computed again."
        ) from None


def folder_of(target: Path) -> Path:
    """The folder for the parts of an output file."""
    return target.with_name(f".{target.name}.parts")


@contextmanager
def open_parts(
    target: Path,
    spec: VectorSpec,
    identity: Identity | None,
    beside: Sequence[Path] = (),
    *,
    overwrite: bool = False,
    ordered: bool = False,
) -> Iterator[Parts]:
    """The parts of the run that makes `target`, and `beside`, which must be new; see `open_run` for the rules.

    overwrite: they may replace files that exist.
    ordered: each part continues from the state of the one before, so that no part can be used without all before it.

    The finished parts stay until they are joined.
    """
    if not target.parent.is_dir():
        raise OutputError(unwritable_message(target))
    keeps = (PARTS, JOINED, PUBLISHED)
    with open_run(target, folder_of(target), kind="embedding run", identity=identity, keeps=keeps) as run:
        parts = Parts(run, spec, overwrite=overwrite, ordered=ordered)
        parts.check_beside(target, beside)
        try:
            yield parts
        finally:
            if not any(run.work.glob(PARTS)):
                run.remove()  # there is nothing to resume from

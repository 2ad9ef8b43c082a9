"""What a campaign tries: a target has cases, which can be drawn and written as JSON, and says what must hold for each.

    check(box, case) -> SAME      the result is that of undamaged files
                        REFUSED   a clear error
                        OTHER     another result, where nothing promises to notice the damage

Everything else is a failure: another exception, `Failure`, a crash, a hang, a write outside the box.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st

from bilmo.errors import BilmoError
from fuzz import damage

USERS = tuple(kind for kind in damage.KINDS if kind != "pipe")
"""Damage to what a user names: a pipe is a valid input, which may wait for ever."""
SAME, REFUSED, OTHER = "same", "refused", "other"


def weighted(*choices: tuple[int, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """One of these strategies, each as often as its weight says; `st.one_of` ignores a strategy that is repeated."""
    numbers = [number for number, (weight, _) in enumerate(choices) for _ in range(weight)]
    return st.sampled_from(numbers).flatmap(lambda number: choices[number][1])


class Failure(Exception):  # noqa: N818
    """Something that must not happen, although nothing raised an error."""


class Box:
    """The only folder that a case may write to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.case = root / "case"
        """Emptied for each case."""
        self.good = root / "good"
        """Undamaged files, made once."""
        self.outside = root / "outside"
        """Somebody else's files: nothing may change them, and links lead to them."""
        self.streams = root / "streams"
        """Standard input and output of other processes."""
        for folder in (
            self.case,
            self.good,
            self.outside,
            self.streams,
            *(root / name for name in ("tmp", "cache", "home")),
        ):
            folder.mkdir(parents=True, exist_ok=True)
        for name in ("secret.txt", "run.json", "bilmo.lock", "config.json", "00000.part", "vocab.txt"):
            (self.outside / name).write_text("must stay\n")
        self._before = self._outside_now()

    def _outside_now(self) -> dict[str, tuple[bytes, int]]:
        return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in self.outside.iterdir()}

    def check_outside(self) -> None:
        """Fail if somebody else's files have changed."""
        if self._outside_now() != self._before:
            raise Failure("files outside the folder have changed")


class Target(ABC):
    """One reader or one promise."""

    name: ClassVar[str]
    share: ClassVar[int]
    """Of 1,000 cases of a campaign."""
    chunk: ClassVar[int] = 200
    """Cases between two reports."""

    @abstractmethod
    def prepare(self, box: Box) -> None:
        """Make what every case needs; called once, before `cases`."""

    @abstractmethod
    def cases(self) -> st.SearchStrategy[Any]:
        """Cases as plain JSON values."""

    @abstractmethod
    def check(self, box: Box, case: Any) -> str:
        """Try one case."""


class DamagedFiles(Target):
    """Files that a reader must refuse, or read as if they were not damaged."""

    noticed: ClassVar[bool] = True
    """Whether every damage is noticed; otherwise a file may be read as something else."""

    def prepare(self, box: Box) -> None:
        self.make(box.case)
        self.files = damage.read(box.case)
        self.expected = self.read(box.case)
        damage.write(box.case, self.files)
        if self.read(box.case) != self.expected:
            raise Failure("the same files give two results")

    def cases(self) -> st.SearchStrategy[Any]:
        return damage.edits(list(self.files))

    @abstractmethod
    def make(self, folder: Path) -> None:
        """Write the undamaged files."""

    @abstractmethod
    def read(self, folder: Path) -> object:
        """What a user gets from the files."""

    def check(self, box: Box, case: Any) -> str:
        damage.write(box.case, damage.apply(self.files, case))
        return self.compared(lambda: self.read(box.case))

    def compared(self, read: Callable[[], object]) -> str:
        """Compare a result with that of the undamaged files."""
        try:
            found = read()
        except BilmoError:
            return REFUSED
        if found == self.expected:
            return SAME
        if self.noticed:
            raise Failure("silent difference: damaged files were read, with another result")
        return OTHER


class EachFile(DamagedFiles):
    """Files, or folders of files, that have nothing to do with each other."""

    noticed = False

    def prepare(self, box: Box) -> None:
        self.make(box.case)
        tops = sorted(path.name for path in box.case.iterdir())
        self.groups = {
            top: {name: content for name, content in damage.read(box.case).items() if name.split("/")[0] == top}
            for top in tops
        }
        self.expected_of = {top: self.read(box.case / top) for top in tops}

    def cases(self) -> st.SearchStrategy[Any]:
        return st.sampled_from(list(self.groups)).flatmap(
            lambda top: st.tuples(st.just(top), damage.edits(list(self.groups[top]), kinds=USERS)).map(list)
        )

    def check(self, box: Box, case: Any) -> str:
        top, edits = case
        damage.write(box.case, damage.apply(self.groups[top], edits))
        self.expected = self.expected_of[top]
        return self.compared(lambda: self.read(box.case / top))

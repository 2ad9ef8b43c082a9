"""Runs that are killed, meet another run, or fill the disk: started again, they end as if nothing had happened."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from bilmo.embed import job
from bilmo.sense import index_parts
from bilmo.store import model_folder
from fuzz import damage
from fuzz.forks import SLOWEST, Ended, Fork
from fuzz.guard import GUARD
from fuzz.target import SAME, Box, Failure, Target
from small_runs import log, write_text

import task_data

COMMANDS: dict[str, list[str]] = {
    "npy": ["embed", "model", "text.txt", "-o", "out.npy", "--lang", "west"],
    "h5": ["embed", "model", "text.txt", "-o", "out.h5"],
    "jsonl": ["embed", "model", "text.txt", "-o", "out.jsonl.gz", "--pool", "mean"],
    "train": ["train", "text.txt", "-o", "out", "--recipe", "recipe.toml"],
    "fit": ["fit", "classify", "model", "--train", "reviews.tsv", "-o", "out", "--epochs", "2", "--hidden", "4"],
    "index": ["index", "model", "text.txt", "-o", "out", "--lang", "west"],
    "convert": ["convert", "model", "out"],
    "old": ["convert", "model", "out", "--to", "allennlp"],
}
FIRST = {"call": 5, "change": 1}
"""Before the first calls, the command line does not expect Ctrl-C yet."""
SLOWEST_COUNT = 300
"""Seconds for counting the moments of a command, which is not a case: each call of a function is counted."""
SIGNALS = {"KILL": signal.SIGKILL, "TERM": signal.SIGTERM, "INT": signal.SIGINT}


class Point:
    """A moment of a run: the n-th call of a Python function, or the moment before the n-th change of a file."""

    def __init__(self, event: str, number: int, then: Callable[[], None]) -> None:
        self.event, self.left, self.then = event, number, then

    def wait(self) -> None:
        """Call this in the process of the run."""
        if self.event == "call":
            sys.setprofile(lambda frame, kind, value: self._count() if kind == "call" else None)
        else:
            GUARD.before_change = self._count

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            sys.setprofile(None)
            self.then()


class Faults(Target):
    """What all faults share: the commands, what they make when nothing happens, and how many moments they have."""

    chunk = 40

    def prepare(self, box: Box) -> None:
        job.PART_TOKENS = index_parts.PART_WORDS = 60
        model_folder.write(task_data.made(0), box.case / "model")
        write_text(box.case, lines=40)
        rows = zip(*reversed(task_data.texts(16)), strict=True)
        (box.case / "reviews.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in rows))
        self.files = damage.read(box.case)
        self.expected: dict[str, Any] = {}
        self.moments: dict[tuple[str, str], int] = {}
        self.largest: dict[str, int] = {}
        for name in COMMANDS:
            for event in ("call", "change"):
                self.moments[name, event] = self._count(box, name, event)
            made = damage.read(box.case)
            self.expected[name] = self._result(box.case)
            self.largest[name] = max(len(content) for file, content in made.items() if file not in self.files)

    def _count(self, box: Box, name: str, event: str) -> int:
        """How many events a command has when nothing happens."""
        damage.write(box.case, self.files)
        point, counted = Point(event, -1, lambda: None), box.streams / "counted"
        GUARD.on = True

        def write() -> None:
            counted.write_text(str(-1 - point.left))

        self._finish(box, name, before=point.wait, after=write, slowest=SLOWEST_COUNT)
        GUARD.on = False
        return int(counted.read_text())

    def _finish(self, box: Box, name: str, *, slowest: float = SLOWEST, **more: Any) -> Ended:
        """Run a command to its end, undisturbed."""
        ended = Fork(box, COMMANDS[name], **more).end(slowest=slowest)
        if ended.code != 0:
            raise Failure(f"a run cannot be finished: code {ended.code}: {ended.err[-500:]}")
        return ended

    def _result(self, folder: Path) -> dict[str, object]:
        """All files, except what depends on time: the log, the card and the picture of a training."""
        found: dict[str, object] = {}
        for name, content in damage.read(folder).items():
            if name.endswith("train.jsonl"):
                steps = Counter(entry["number"] for entry in log((folder / name).parent, "step"))
                found[name] = sorted(steps.items())
            elif not name.endswith(("README.md", "curve.svg", "checkpoint.safetensors", "run.json", ".lock")):
                found[name] = content
        for name in list(found):  # a conversion that was killed leaves a folder with a name of its own
            if name.startswith(".out.") and ".partial/" in name:
                del found[name]
        return found

    def _compare(self, box: Box, name: str) -> str:
        """Finish the run; the result must be the one of an undisturbed run."""
        self._finish(box, name)
        found, expected = self._result(box.case), self.expected[name]
        different = sorted(file for file in found.keys() | expected.keys() if found.get(file) != expected.get(file))
        if different:
            raise Failure(f"silent difference: {name} ends with other files: {different}")
        return SAME

    def _moments(self) -> st.SearchStrategy[list[Any]]:
        """A command, a kind of event, and the number of the event."""
        return st.sampled_from(sorted(self.moments)).flatmap(
            lambda key: st.integers(FIRST[key[1]], self.moments[key]).map(lambda number: [*key, number])
        )


class Kills(Faults):
    """Killed once, twice or three times, at any moment."""

    name, share = "kills", 5

    def cases(self) -> st.SearchStrategy[Any]:
        return st.tuples(st.lists(self._moments(), min_size=1, max_size=3), st.sampled_from(sorted(SIGNALS))).map(list)

    def check(self, box: Box, case: Any) -> str:
        points, name = case
        damage.write(box.case, self.files)
        command = points[0][0]
        for _, event, number in points:
            point = Point(event, number, partial(signal.raise_signal, SIGNALS[name]))
            ended = Fork(box, COMMANDS[command], before=point.wait).end()
            if ended.code not in (0, 1, 130, -SIGNALS[name]) or "Traceback" in ended.err:
                raise Failure(f"{name} ends with code {ended.code}: {ended.err[-1000:]}")
            for file in ("text.txt", "reviews.tsv"):
                if (box.case / file).read_bytes() != self.files[file]:
                    raise Failure(f"changed: {file}")
            if ended.code == 1:
                raise Failure(f"a killed run is refused: {ended.err[-500:]}")
            if ended.code == 0:
                break
        return self._compare(box, command) if ended.code else SAME


class TwoRuns(Faults):
    """A run is stopped at any moment, the same command runs beside it, then the first one continues."""

    name, share = "two runs at once", 3

    def cases(self) -> st.SearchStrategy[Any]:
        return self._moments()

    def check(self, box: Box, case: Any) -> str:
        command, event, number = case
        damage.write(box.case, self.files)
        point = Point(event, number, partial(signal.raise_signal, signal.SIGSTOP))
        first = Fork(box, COMMANDS[command], before=point.wait)
        ended = first.wait(stopped=True)
        second = Fork(box, COMMANDS[command]).end()
        if ended is None:
            os.kill(first.process, signal.SIGCONT)
            ended = first.end()
        codes = sorted((ended.code, second.code))
        if codes not in ([0, 0], [0, 1]):
            raise Failure(f"two runs end with codes {codes}: {ended.err[-500:]} {second.err[-500:]}")
        found, expected = self._result(box.case), self.expected[command]
        if found != expected:
            different = sorted(file for file in found.keys() | expected.keys() if found.get(file) != expected.get(file))
            raise Failure(f"silent difference: two runs of {command} make other files: {different}")
        return SAME


class FullDisk(Faults):
    """No file can grow beyond some length."""

    name, share = "full disk", 4

    def cases(self) -> st.SearchStrategy[Any]:
        return st.sampled_from(sorted(COMMANDS)).flatmap(
            lambda name: st.integers(0, self.largest[name]).map(lambda size: [name, size])
        )

    def check(self, box: Box, case: Any) -> str:
        command, size = case
        damage.write(box.case, self.files)
        ended = Fork(box, COMMANDS[command], before=partial(_limit, size)).end()
        if ended.code not in (0, 1):
            raise Failure(f"a full disk ends with code {ended.code}: {ended.err[-500:]}")
        if left := [path.name for path in box.case.rglob("*.partial")]:
            raise Failure(f"a full disk leaves {left}")
        return self._compare(box, command) if ended.code else SAME


def _limit(size: int) -> None:
    """The limit of a file's size; messages of the command are short, and their files are limited too."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(size, 4096), resource.RLIM_INFINITY))

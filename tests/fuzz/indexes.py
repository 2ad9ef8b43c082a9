"""Targets: indexes of uses, finished and half-built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from bilmo.embed.embedder import Embedder
from bilmo.sense import index_parts, nearest_uses
from bilmo.sense.index import Index, index_events
from bilmo.sense.index_parts import Step
from fuzz import damage
from fuzz.seal import sealed
from fuzz.target import Box, DamagedFiles, Failure

import task_data

LINES = ("the cat sat on the mat", "", "漢字 on a mat .", "dogs saw the bank", "the bank of a river", "a b c d") * 3
ASKED = "he sat on the [bank] ."


class IndexFolder(DamagedFiles):
    """An index of two texts; the first has a structure for approximate search, if faiss is installed."""

    name, share = "index", 30

    def make(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.elmo = Embedder(task_data.made(0), lang="west")
        most, nearest_uses.EXACT_USES = nearest_uses.EXACT_USES, 40
        for name, lines in (("first.txt", LINES), ("second.txt", LINES[:4])):
            (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        index = Index.build(self.elmo, folder / "first.txt", folder / "uses")
        index.add(self.elmo, folder / "second.txt")
        nearest_uses.EXACT_USES = most

    def cases(self) -> st.SearchStrategy[Any]:
        return damage.edits(list(self.files), only=[name for name in self.files if name.startswith("uses/")])

    def read(self, folder: Path) -> object:
        index = Index.open(folder / "uses")
        return [index.search(self.elmo, ASKED, topn, same_word=same) for topn, same in ((1000, False), (9, True))]


class ForgedIndex(IndexFolder):
    """An index, changed by somebody who also wrote the right hashes."""

    name, share = "forged index", 20
    noticed = False

    def check(self, box: Box, case: Any) -> str:
        damage.write(box.case, sealed(damage.apply(self.files, case)))
        return self.compared(lambda: self.read(box.case))


class IndexRun(IndexFolder):
    """Some of the parts are computed."""

    name, share = "parts of an index", 20

    def make(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        index_parts.PART_WORDS = 15
        self.elmo = Embedder(task_data.made(0), lang="west")
        (folder / "text.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
        events = self.started(folder)
        for number, _ in enumerate(event for event in events if isinstance(event, Step)):
            if number == 3:
                break
        events.close()

    def started(self, folder: Path) -> Any:
        return index_events(self.elmo, folder / "text.txt", folder / "uses")

    def cases(self) -> st.SearchStrategy[Any]:
        return damage.edits(list(self.files), only=[name for name in self.files if name != "text.txt"])

    def read(self, folder: Path) -> object:
        for _ in self.started(folder):
            pass
        left = {path.name for path in folder.iterdir()} - {"text.txt", "uses"}
        if left:
            raise Failure(f"a finished run leaves {left}")
        return super().read(folder)

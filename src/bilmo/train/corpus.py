"""Text to ids on disk, once: the words by falling count, and every sentence as numbers that point at them.

Training and held-out text are told apart here, by whole lines (paragraphs) and by their content, so that no
paragraph is in both, however often it occurs. Memory grows with the number of distinct words only.

Knows: text, vocab, numpy. Blind to: networks, recipes.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bilmo.errors import ConfigError, DamagedFile, TextError
from bilmo.ids.vocab import MARKS
from bilmo.store.atomic import new_folder
from bilmo.store.model_folder import read_json
from bilmo.text.split import Splitter

Side = Literal["train", "held"]
SIDES: tuple[Side, ...] = ("train", "held")
PARTS = {"ids": "<u4", "ends": "<i8"}
AT_ONCE = 1 << 20
"""Ids held in memory at a time."""


@dataclass(frozen=True)
class Facts:
    """What a corpus is, for whoever wants to know without reading it."""

    words: int
    """Distinct words, the three marks included."""
    tokens: dict[Side, int]
    sentences: dict[Side, int]


@dataclass(frozen=True)
class Sentences:
    """One side of a corpus: the word ids of all sentences in a row, and where each sentence ends."""

    ids: NDArray[np.uint32]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each sentence, boundaries not counted."""
        return np.diff(self.ends, prepend=0)


class Corpus:
    """A corpus on disk; ids are memory-mapped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.facts = read_json(folder / "facts.json", Facts)
            self._check()
        except (OSError, EOFError, ValueError, KeyError, ConfigError, DamagedFile) as error:
            raise DamagedFile(
                f"{folder}: the text of this run is damaged ({error}). Delete this folder and give the same command "
                "again: it is made anew from the text."
            ) from None

    def _check(self) -> None:
        """A file that was cut off or is another's would be trained on without a word."""
        facts = self.facts
        wanted = {"words.txt": facts.words, "counts.npy": facts.words}
        found: dict[str, float] = {"words.txt": (self.folder / "words.txt").read_bytes().count(b"\n")}
        found["counts.npy"] = len(np.load(self.folder / "counts.npy", mmap_mode="r"))
        for side in SIDES:
            wanted |= {f"{side}.ids": facts.tokens[side], f"{side}.ends": facts.sentences[side]}
            for part, kind in PARTS.items():
                found[f"{side}.{part}"] = (self.folder / f"{side}.{part}").stat().st_size / np.dtype(kind).itemsize
        for name, number in wanted.items():
            if found[name] != number:
                raise DamagedFile(f"{name} holds {found[name]:,.10g} numbers or words, not {number:,}")

    @property
    def words(self) -> list[str]:
        """All distinct words: the marks, then words by falling count in the training text."""
        return (self.folder / "words.txt").read_text(encoding="utf-8").split("\n")[:-1]

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often each word occurs in the training text."""
        return np.asarray(np.load(self.folder / "counts.npy"))

    def sentences(self, side: Side) -> Sentences:
        """The sentences of one side."""
        ids, ends = (_mapped(self.folder / f"{side}.{part}", kind) for part, kind in PARTS.items())
        return Sentences(ids, ends)


def _mapped(path: Path, kind: str) -> NDArray[Any]:
    if path.stat().st_size == 0:  # nothing can be mapped of an empty file
        return np.zeros(0, dtype=kind)
    return np.memmap(path, dtype=kind, mode="r")


def build(lines: Iterable[str], split: Splitter, folder: Path, *, held_out: float, seed: int) -> Corpus:
    """Read text once, write its ids; the folder appears when it is whole."""
    with new_folder(folder) as partial:
        numbers: dict[str, int] = {mark: n for n, mark in enumerate(MARKS)}  # in the order of first sight
        counts = array("q", [0] * len(MARKS))
        with ExitStack() as stack:
            writers = {side: _Writer(stack, partial, side) for side in SIDES}
            for line in lines:
                side: Side = "held" if _share(line, seed) < held_out else "train"
                for sentence in split(line):
                    ids = array("I", [numbers.setdefault(word, len(numbers)) for word in sentence])
                    counts.extend([0] * (len(numbers) - len(counts)))
                    if side == "train":
                        for id in ids:
                            counts[id] += 1
                    writers[side].add(ids)
        sentences = {side: writers[side].sentences for side in SIDES}
        if not any(sentences.values()):
            raise TextError("the text holds no sentences to train on: every line is blank")
        if not all(sentences.values()):
            how = "none" if sentences["train"] else "every one"
            raise TextError(
                f"the text has {sum(sentences.values())} sentences, and {how} of its paragraphs fell to the held-out "
                f"part (a share of {held_out}). Give more text, shorter lines, or a recipe file with another held_out."
            )
        order = _by_count(list(numbers), np.asarray(counts))
        for side in SIDES:
            _renumber(partial / f"{side}.ids", order)
        words = list(numbers)
        text = "".join(f"{words[n]}\n" for n in order)
        (partial / "words.txt").write_text(text, encoding="utf-8", newline="\n")
        np.save(partial / "counts.npy", np.asarray(counts)[order])
        facts = Facts(
            words=len(words),
            tokens={side: writers[side].tokens for side in SIDES},
            sentences=sentences,
        )
        (partial / "facts.json").write_text(json.dumps(asdict(facts), indent=1), encoding="utf-8")
    return Corpus(folder)


class _Writer:
    """Ids and ends of one side, written as they come."""

    def __init__(self, stack: ExitStack, folder: Path, side: Side) -> None:
        """`stack` closes the files in the end."""
        self._files: dict[str, IO[bytes]] = {
            part: stack.enter_context((folder / f"{side}.{part}").open("wb")) for part in PARTS
        }
        self.tokens = self.sentences = 0

    def add(self, ids: array[int]) -> None:
        self.tokens += len(ids)
        self.sentences += 1
        ids.tofile(self._files["ids"])
        array("q", [self.tokens]).tofile(self._files["ends"])


def _share(line: str, seed: int) -> float:
    """A number from 0 to 1 that depends on the line's text and the seed alone."""
    digest = hashlib.blake2b(line.strip().encode("utf-8", "surrogatepass"), digest_size=8, key=str(seed).encode())
    return int.from_bytes(digest.digest()) / 2**64


def _by_count(words: list[str], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers of first sight in the order of final ids: the marks, then falling count, ties by code point."""
    rest = sorted(range(len(MARKS), len(words)), key=lambda n: (-counts[n], words[n]))
    return np.array([*range(len(MARKS)), *rest], dtype=np.int64)


def _renumber(path: Path, order: NDArray[np.int64]) -> None:
    """Turn numbers of first sight into final ids, in place, a piece at a time."""
    new = np.empty(len(order), dtype=PARTS["ids"])
    new[order] = np.arange(len(order), dtype=np.uint32)
    with path.open("r+b") as file:  # not mapped, for then all of it would lie in memory by and by
        while piece := file.read(new.itemsize * AT_ONCE):
            file.seek(-len(piece), os.SEEK_CUR)
            file.write(new[np.frombuffer(piece, dtype=PARTS["ids"])].tobytes())

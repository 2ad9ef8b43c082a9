"""Text to ids on disk, once: the distinct words in descending order of frequency, and every sentence as word ids.

Text is held out by whole lines (paragraphs), chosen by their content, so that no paragraph is on both sides, however
often it occurs. Memory grows with the number of distinct words only.

Knows: text, vocab, numpy. Blind to: networks, recipes.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bilmo.errors import ConfigError, DamagedFile, TextError
from bilmo.ids.chars import SENTENCE_BEGIN, SENTENCE_END
from bilmo.ids.vocab import MARKS
from bilmo.ids.windows import Text
from bilmo.net.config import STRICT
from bilmo.store.atomic import new_folder
from bilmo.store.hashed_folder import HashedFolder, NewFolder, check_own_hash
from bilmo.store.validate import checked, parse_json
from bilmo.text.dictionary import Dictionary
from bilmo.text.split import splitter

Side = Literal["train", "held_out"]
SIDES: tuple[Side, ...] = ("train", "held_out")
PARTS = {"ids": "<u4", "ends": "<i8"}
IDS_AT_ONCE = 1 << 20
"""Ids in memory at a time when they are renumbered."""
FACTS, FORMAT = "facts.json", 2
"""Format 1 had no number."""


@dataclass(frozen=True)
class Facts:
    """What a corpus is."""

    __pydantic_config__ = STRICT

    lang: str
    """How the text was split."""
    words: int
    """Distinct words, including the three marks."""
    tokens: dict[Side, int]
    sentences: dict[Side, int]
    bilmo_corpus: int = FORMAT
    sha256: dict[str, str] = field(default_factory=dict)
    """Of each file; empty in a corpus that was made before files were hashed."""


class Corpus:
    """A corpus on disk, whose files are checked by their hashes; its ids are memory-mapped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.facts = _read_facts(folder / FACTS)
            self._check()
        except (OSError, EOFError, ValueError, KeyError, ConfigError, DamagedFile) as error:
            raise DamagedFile(
                f"{folder}: this corpus cannot be used: {str(error).rstrip('. ')}. Delete this folder and run the same "
                "command again: the corpus is made again from the text."
            ) from None

    @property
    def identity(self) -> str:
        """A hash of all its files; empty for a corpus that was made before files were hashed."""
        return self.facts.sha256.get(FACTS, "")

    def _check(self) -> None:
        """Refuse files that were damaged or belong to another corpus, which would be trained on unnoticed."""
        facts = self.facts
        files = HashedFolder(self.folder, facts.sha256, remedy="")
        for name in facts.sha256:
            if name != FACTS:
                files.check(name)
        expected = {"words.txt": facts.words, "counts.npy": facts.words}
        found: dict[str, float] = {"words.txt": (self.folder / "words.txt").read_bytes().count(b"\n")}
        found["counts.npy"] = len(np.load(self.folder / "counts.npy", mmap_mode="r"))
        for side in SIDES:
            expected |= {f"{side}.ids": facts.tokens[side], f"{side}.ends": facts.sentences[side]}
            for part, kind in PARTS.items():
                found[f"{side}.{part}"] = (self.folder / f"{side}.{part}").stat().st_size / np.dtype(kind).itemsize
        for name, number in expected.items():
            if found[name] != number:
                raise DamagedFile(f"{name} is damaged: it has {found[name]:,.10g} entries instead of {number:,}")

    @property
    def words(self) -> list[str]:
        """All distinct words: the marks, then words in descending order of frequency in the training text."""
        return (self.folder / "words.txt").read_text(encoding="utf-8").split("\n")[:-1]

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often each word occurs in the training text."""
        return np.asarray(np.load(self.folder / "counts.npy"))

    def text(self, side: Side) -> Text:
        """All sentences of one side."""
        ids, ends = (_mapped(self.folder / f"{side}.{part}", kind) for part, kind in PARTS.items())
        return Text(ids, ends, MARKS.index(SENTENCE_BEGIN), MARKS.index(SENTENCE_END))


def _read_facts(path: Path) -> Facts:
    data = parse_json(path)
    version = data.get("bilmo_corpus", 1) if isinstance(data, dict) else 1
    if version != FORMAT:
        raise ConfigError(
            f"it was made by another version of bilmo (corpus format {version}; this version reads format {FORMAT})"
        )
    facts = checked(data, Facts, path.name)
    check_own_hash(path, data, remedy="")
    return facts


def _mapped(path: Path, kind: str) -> NDArray[Any]:
    if path.stat().st_size == 0:  # an empty file cannot be mapped
        return np.zeros(0, dtype=kind)
    return np.memmap(path, dtype=kind, mode="r")


def build(
    lines: Iterable[str],
    lang: str,
    folder: Path,
    *,
    held_out: float,
    seed: int,
    dictionary: Dictionary | None = None,
) -> Corpus:
    """Read text once, split it as `lang` says, and write its ids; the folder appears when it is complete."""
    split = splitter(lang, dictionary)
    with new_folder(folder) as partial:
        numbers: dict[str, int] = {mark: n for n, mark in enumerate(MARKS)}  # by first occurrence
        counts = array("q", [0] * len(MARKS))
        with ExitStack() as stack:
            writers = {side: _Writer(stack, partial, side) for side in SIDES}
            for line in lines:
                side: Side = "held_out" if _share(line, seed) < held_out else "train"
                for sentence in split(line):
                    ids = array("I", [numbers.setdefault(word, len(numbers)) for word in sentence])
                    counts.extend([0] * (len(numbers) - len(counts)))
                    if side == "train":
                        for id in ids:
                            counts[id] += 1
                    writers[side].add(ids)
        sentences = {side: writers[side].sentences for side in SIDES}
        if not any(sentences.values()):
            raise TextError("the text has no sentences to train on: every line is blank")
        if not all(sentences.values()):
            which = "none of its paragraphs was" if sentences["train"] else "all of its paragraphs were"
            raise TextError(
                f"the text has {sum(sentences.values())} sentences, and {which} chosen as held-out text (a share of "
                f"{held_out}). Use more text, shorter lines, or a recipe file with another held_out."
            )
        order = _by_count(list(numbers), np.asarray(counts))
        for side in SIDES:
            _renumber(partial / f"{side}.ids", order)
        words = list(numbers)
        text = "".join(f"{words[n]}\n" for n in order)
        (partial / "words.txt").write_text(text, encoding="utf-8", newline="\n")
        np.save(partial / "counts.npy", np.asarray(counts)[order])
        facts = Facts(
            lang=lang,
            words=len(words),
            tokens={side: writers[side].tokens for side in SIDES},
            sentences=sentences,
        )
        files = NewFolder(partial)
        for file in sorted(partial.iterdir()):
            files.add(file.name)
        files.write_json(FACTS, asdict(facts))
    return Corpus(folder)


class _Writer:
    """Writes ids and ends of one side, sentence by sentence."""

    def __init__(self, stack: ExitStack, folder: Path, side: Side) -> None:
        """`stack` closes the files."""
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
    """A number from 0 to 1 that depends only on the text of the line and the seed."""
    digest = hashlib.blake2b(line.strip().encode("utf-8", "surrogatepass"), digest_size=8, key=str(seed).encode())
    return int.from_bytes(digest.digest()) / 2**64


def _by_count(words: list[str], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """First-occurrence number of each id: marks, then words in descending order of frequency, then by code point."""
    rest = sorted(range(len(MARKS), len(words)), key=lambda n: (-counts[n], words[n]))
    return np.array([*range(len(MARKS)), *rest], dtype=np.int64)


def _renumber(path: Path, order: NDArray[np.int64]) -> None:
    """Turn first-occurrence numbers into final ids, in place, piece by piece."""
    new = np.empty(len(order), dtype=PARTS["ids"])
    new[order] = np.arange(len(order), dtype=np.uint32)
    with path.open("r+b") as file:  # not mapped, because then all of it would end up in memory
        while piece := file.read(new.itemsize * IDS_AT_ONCE):
            file.seek(-len(piece), os.SEEK_CUR)
            file.write(new[np.frombuffer(piece, dtype=PARTS["ids"])].tobytes())

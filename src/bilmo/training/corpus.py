"""Text to ids on disk, once: the distinct words in descending order of frequency, and every sentence as word ids.

Text is held out by whole lines (paragraphs), chosen by their content, so that no paragraph is on both sides, however
often it occurs. Memory grows with the number of distinct words only, or not at all: with `max_words`, words are counted
in blocks of the text, whose counts are merged on disk, and the rarest words become `<UNK>`.

Pieces of the text, each with its own numbers of words, are merged in the order of the text, so the corpus does not
depend on where they were split.

Knows: text, vocab, numpy. Blind to: networks, recipes, where text is split.
"""

from __future__ import annotations

import functools
import heapq
import os
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from bilmo.errors import ConfigError, DamagedFile, TextError
from bilmo.ids.chars import SENTENCE_BEGIN, SENTENCE_END, UNKNOWN
from bilmo.ids.vocab import MARKS
from bilmo.ids.windows import Text
from bilmo.net.config import STRICT
from bilmo.store.atomic import new_folder
from bilmo.store.hashed_folder import HashedFolder, NewFolder, check_own_hash
from bilmo.store.validate import checked, parse_json
from bilmo.text.dictionary import Dictionary
from bilmo.training.distributed.pieces import SIDES, Map, Side, one_process, pieces_of, split_piece

PARTS = {"ids": "<u4", "ends": "<i8"}
IDS_AT_ONCE = 1 << 20
"""Ids in memory at a time when they are renumbered."""
FILES_AT_ONCE = 100
"""Blocks of words that are merged at a time."""
FACTS, FORMAT = "facts.json", 2
"""Format 1 had no number."""


@dataclass(frozen=True)
class Facts:
    """The facts about a corpus."""

    __pydantic_config__ = STRICT

    lang: str
    """How the text was split."""
    words: int
    """Distinct words, including the three marks."""
    tokens: dict[Side, int]
    sentences: dict[Side, int]
    least: int = 0
    """Words that occur less often in the training text were replaced by `<UNK>`, because of `max_words`."""
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
        """Refuse files that are damaged or belong to another corpus."""
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
    max_words: int | None = None,
    mapped: Map = one_process,
) -> Corpus:
    """Read text once, split it as `lang` says, and write its ids; the folder appears when it is complete.

    max_words: distinct words in the corpus, the most frequent ones; and in memory, beside those of one piece.
    mapped: where pieces of the text are split.
    """
    split = functools.partial(split_piece, lang=lang, dictionary=dictionary, held_out=held_out, seed=seed)
    with new_folder(folder) as partial:
        numbers: dict[str, int] = {mark: n for n, mark in enumerate(MARKS)}  # by first occurrence
        counts = array("q", [0] * len(MARKS))
        blocks = _Blocks(partial)
        with ExitStack() as stack:
            writers = {side: _Writer(stack, partial, side) for side in SIDES}
            for piece in stack.enter_context(closing(mapped(split, pieces_of(lines)))):
                ids = [numbers.setdefault(word, len(numbers)) for word in piece.words]
                counts.extend([0] * (len(numbers) - len(counts)))
                np.frombuffer(counts, dtype=np.int64)[ids] += piece.counts
                new = np.array(ids, dtype=PARTS["ids"])
                for side in SIDES:
                    writers[side].add(new[piece.ids[side]], piece.lengths[side])
                if max_words is not None and len(numbers) >= max_words:
                    blocks.add(numbers, counts, {side: writers[side].tokens for side in SIDES})
                    numbers, counts = {mark: n for n, mark in enumerate(MARKS)}, array("q", [0] * len(MARKS))
        sentences = {side: writers[side].sentences for side in SIDES}
        if not any(sentences.values()):
            raise TextError("the text has no sentences to train on: every line is blank")
        if not all(sentences.values()):
            which = "none of its paragraphs was" if sentences["train"] else "all of its paragraphs were"
            raise TextError(
                f"the text has {sum(sentences.values())} sentences, and {which} chosen as held-out text (a share of "
                f"{held_out}). Use more text, shorter lines, or a recipe file with another held_out."
            )
        words, totals, least = list(numbers), np.asarray(counts), 0
        if max_words is not None and blocks.ends:
            blocks.add(numbers, counts, {side: writers[side].tokens for side in SIDES})
            words, totals, least = blocks.merged(max_words)
        order = _by_count(words, totals)
        new = np.empty(len(order), dtype=PARTS["ids"])
        new[order] = np.arange(len(order), dtype=np.uint32)
        if blocks.ends:
            blocks.renumber({word: int(new[n]) for n, word in enumerate(words)})
        else:
            for side in SIDES:
                _renumber(partial / f"{side}.ids", new)
        text = "".join(f"{words[n]}\n" for n in order)
        (partial / "words.txt").write_text(text, encoding="utf-8", newline="\n")
        np.save(partial / "counts.npy", totals[order])
        facts = Facts(
            lang=lang,
            words=len(words),
            tokens={side: writers[side].tokens for side in SIDES},
            sentences=sentences,
            least=least,
        )
        files = NewFolder(partial)
        for file in sorted(partial.iterdir()):
            files.add(file.name)
        files.write_json(FACTS, asdict(facts))
    return Corpus(folder)


class _Writer:
    """Writes ids and ends of one side."""

    def __init__(self, stack: ExitStack, folder: Path, side: Side) -> None:
        """`stack` closes the files."""
        self._files: dict[str, IO[bytes]] = {
            part: stack.enter_context((folder / f"{side}.{part}").open("wb")) for part in PARTS
        }
        self.tokens = self.sentences = 0

    def add(self, ids: NDArray[np.uint32], lengths: NDArray[np.int64]) -> None:
        self._files["ids"].write(ids.tobytes())
        self._files["ends"].write((self.tokens + lengths.cumsum()).astype(PARTS["ends"]).tobytes())
        self.tokens += len(ids)
        self.sentences += len(lengths)


class _Blocks:
    """Blocks of a text, whose words are numbered and counted separately, so that only one block is in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ends: list[dict[Side, int]] = []
        """Where each block ends in the ids of each side."""

    def add(self, numbers: dict[str, int], counts: array[int], ends: dict[Side, int]) -> None:
        """Write the words of a block in their order, each with its count and its number."""
        with self._file(len(self.ends)).open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{counts[n]} {n} {word}\n" for word, n in sorted(numbers.items()))
        self.ends.append(ends)

    def merged(self, most: int) -> tuple[list[str], NDArray[np.int64], int]:
        """The marks and the most frequent words, their counts, and the least count of a word that is kept.

        The count of `<UNK>` is that of all words that are not kept.
        """
        number_with = Counter(count for _, count in self._totals())
        least, kept = 0, sum(number_with.values())
        for count in sorted(number_with):
            if kept <= most:
                break
            kept -= number_with[count]
            least = count + 1
        found = dict.fromkeys(MARKS, 0)
        for word, count in self._totals():
            if count >= least or word in found:
                found[word] = found.get(word, 0) + count
            else:
                found[UNKNOWN] += count
        for path in self._folder.glob("merged-*.txt"):
            path.unlink()
        return list(found), np.array(list(found.values()), dtype=np.int64), least

    def renumber(self, ids: dict[str, int]) -> None:
        """Turn the numbers of all blocks into final ids, and remove the blocks."""
        begins = dict.fromkeys(SIDES, 0)
        for number, ends in enumerate(self.ends):
            path = self._file(number)
            new = np.empty(_lines(path), dtype=PARTS["ids"])
            for _, n, word in _entries(path):
                new[n] = ids.get(word, ids[UNKNOWN])
            for side in SIDES:
                _renumber(self._folder / f"{side}.ids", new, begins[side], ends[side])
            begins = ends
            path.unlink()

    def _totals(self) -> Iterator[tuple[str, int]]:
        """Every distinct word of all blocks with its count, in the order of words."""
        files = [self._file(number) for number in range(len(self.ends))]
        while len(files) > FILES_AT_ONCE:  # a process may open only some hundreds
            some, files = files[:FILES_AT_ONCE], files[FILES_AT_ONCE:]
            path = self._folder / f"merged-{some[0].stem}.txt"
            if not path.exists():
                with path.open("w", encoding="utf-8", newline="\n") as file:
                    file.writelines(f"{count} 0 {word}\n" for word, count in _summed(some))
            files.append(path)
        yield from _summed(files)

    def _file(self, number: int) -> Path:
        return self._folder / f"block-{number}.txt"


def _summed(files: list[Path]) -> Iterator[tuple[str, int]]:
    """Every distinct word of some blocks with its count, in the order of words."""
    merged = heapq.merge(*map(_entries, files), key=itemgetter(2))
    for word, same in groupby(merged, key=itemgetter(2)):
        yield word, sum(count for count, _, _ in same)


def _entries(path: Path) -> Iterator[tuple[int, int, str]]:
    """Count, number and word of each line of a block."""
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            count, number, word = line.removesuffix("\n").split(" ", 2)
            yield int(count), int(number), word


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _by_count(words: list[str], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """First-occurrence number of each id: marks, then words in descending order of frequency, then by code point."""
    rest = sorted(range(len(MARKS), len(words)), key=lambda n: (-counts[n], words[n]))
    return np.array([*range(len(MARKS)), *rest], dtype=np.int64)


def _renumber(path: Path, new: NDArray[np.uint32], begin: int = 0, end: int | None = None) -> None:
    """Turn numbers into final ids, in place, piece by piece; `begin` and `end` count ids."""
    with path.open("r+b") as file:  # not mapped, because then all of it would end up in memory
        file.seek(begin * new.itemsize)
        left = IDS_AT_ONCE if end is None else end - begin
        while piece := file.read(new.itemsize * min(left, IDS_AT_ONCE)):
            left -= 0 if end is None else len(piece) // new.itemsize
            file.seek(-len(piece), os.SEEK_CUR)
            file.write(new[np.frombuffer(piece, dtype=PARTS["ids"])].tobytes())

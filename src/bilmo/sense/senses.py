"""Senses of a word without labels: its uses in a text, in groups of similar contexts.

The result does not depend on the order of the text: uses are sorted by their sentences before they are grouped.

Knows: Embedder, Space, Index, groups. Blind to: pictures, the command line.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from bilmo import progress as bars
from bilmo.embed.embedder import Embedder
from bilmo.embed.word_space import Whitening
from bilmo.errors import TextError
from bilmo.net.mix import How
from bilmo.sense.groups import group, plane
from bilmo.sense.index import Index
from bilmo.sense.places import Place, in_line, is_word
from bilmo.sense.space import SAMPLE_WORDS, Floats, Space, sampled
from bilmo.text.files import all_lines, listed_paths, named_lines

MOST_USES = 2_000
"""Maximum number of uses that are grouped; if there are more, a sample is drawn, always the same ones."""
WINDOW = 8
"""Tokens before and after a use that count as near it."""
TYPICAL = 5
"""Number of typical words of a group."""


@dataclass(frozen=True)
class Use:
    """A word at one place of a text."""

    tokens: list[str]
    position: int
    text: str
    """The sentence, with the word in square brackets."""
    file: str
    line: int
    x: float
    y: float
    """x and y: the place on the map."""


@dataclass(frozen=True)
class Sense:
    """A group of uses."""

    typical_words: list[str]
    """Words that are typical near these uses."""
    uses: list[Use]
    """Uses of the group, the most typical ones first."""


@dataclass(frozen=True)
class Senses:
    """The uses of a word in a text, by sense; the largest sense comes first.

    >>> bilmo.Senses.find(elmo, "bank", "text.txt").senses[0].typical_words        # doctest: +SKIP
    """

    word: str
    senses: list[Sense]
    total: int
    """Number of uses in the text; those that were grouped may be fewer."""
    silhouettes: dict[int, float]
    """The mean silhouette of each number of groups that was tried; `bilmo.sense.groups` explains the choice."""

    @classmethod
    def find(
        cls,
        elmo: Embedder,
        word: str,
        texts: str | PathLike[str] | Iterable[str | PathLike[str]],
        *,
        mix: How = "top",
        progress: bool = False,
    ) -> Senses:
        """Group the uses of a word in text files or folders; upper and lower case are the same word.

        mix: the layers that are compared.
        progress: show a progress bar on a terminal or in a notebook.
        """
        word = one_word(word)
        paths = listed_paths(texts)
        with bars.counting("sentences", show=progress) as counted:
            chosen, total = _chosen(word, counted(_sentences(elmo, word, paths)), MOST_USES)
        if not chosen:
            raise TextError(f"{word!r} does not occur in the text; give a word as it is written there")
        with bars.working("embedding", show=progress):
            space = Space.of_files(elmo, paths, mix)
            vectors = _vectors(elmo, space, chosen)
        return cls._of(word, chosen, total, vectors, lambda: _elsewhere(elmo, paths))

    @classmethod
    def among(cls, word: str, places: Sequence[Place], vectors: Sequence[Floats], most: int = MOST_USES) -> Senses:
        """The same for sentences in memory; there may be no use.

        vectors: those of all tokens (tokens, width), in one array or in several.
        most: number of uses that are grouped.
        """
        word = one_word(word)
        chosen, total = _chosen(word, places, most)
        if not chosen:
            return cls(word, [], 0, {})
        values = np.concatenate(vectors)
        begins = np.cumsum([0, *(len(place.tokens) for place in places)])[:-1]
        words = [begin + number for place, begin in zip(places, begins, strict=True) for number in place.words]
        begin_of = {id(place): begin for place, begin in zip(places, begins, strict=True)}
        here = values[[begin_of[id(place)] + position for place, position in chosen]]
        here = Whitening.of(values[words]).apply(here)
        return cls._of(word, chosen, total, here, lambda: _words(places))

    @classmethod
    def in_index(cls, word: str, index: Index, most: int = MOST_USES) -> Senses:
        """The same for the uses in an index, by the vectors that are stored there."""
        word = one_word(word)
        uses, vectors, total = index.uses_of(word, most)
        if not uses:
            return cls(word, [], 0, {})
        order = sorted(range(len(uses)), key=lambda number: _by_sentence(uses[number]))
        chosen = [uses[number] for number in order]
        return cls._of(word, chosen, total, vectors[order], lambda: _folded(index.some_words(SAMPLE_WORDS)))

    @classmethod
    def _of(
        cls,
        word: str,
        chosen: Sequence[tuple[Place, int]],
        total: int,
        vectors: Floats,
        elsewhere: Callable[[], Counter[str]],
    ) -> Senses:
        """Group some uses by their vectors.

        elsewhere: how often words occur in the text, if there is only one group.
        """
        labels, silhouettes = group(vectors)
        points = plane(vectors)
        uses = [
            Use(place.tokens, position, place.marked(position), place.file, place.line, float(x), float(y))
            for (place, position), (x, y) in zip(chosen, points, strict=True)
        ]
        members = [np.flatnonzero(labels == number) for number in range(int(labels.max()) + 1)]
        counts = [Counter(near for n in rows for near in nearby_words(uses[n])) for rows in members]
        senses = []
        for number, rows in enumerate(members):
            others = sum(counts[:number] + counts[number + 1 :], Counter()) or elsewhere()
            typical = np.argsort(-(vectors[rows] @ vectors[rows].mean(axis=0)), kind="stable")
            senses.append(Sense(typical_words(counts[number], others), [uses[n] for n in rows[typical]]))
        return cls(word, senses, total, silhouettes)


def one_word(given: str) -> str:
    """A word that was given, without white space around it."""
    word = given.strip()
    if " " in word or not is_word(word):
        raise TextError(f"give one word; found {word!r}")
    return word


def _sentences(elmo: Embedder, word: str, paths: Iterable[Path]) -> Iterator[Place]:
    """The sentences of the lines in which a word may occur."""
    wanted = word.casefold()
    for name, lines in named_lines(paths):
        for number, line in enumerate(lines, start=1):
            if wanted in line.casefold():
                yield from in_line(elmo, line, name, number)


def _elsewhere(elmo: Embedder, paths: Iterable[Path]) -> Counter[str]:
    """How often words occur in a sample of the text."""
    return _words(place for line in sampled(all_lines(paths)) for place in in_line(elmo, line))


def _words(places: Iterable[Place]) -> Counter[str]:
    """How often words occur in sentences."""
    return _folded(place.tokens[n] for place in places for n in place.words)


def _folded(words: Iterable[str]) -> Counter[str]:
    """How often words occur, in upper and lower case together."""
    return Counter(word.casefold() for word in words)


def _chosen(word: str, places: Iterable[Place], most: int) -> tuple[list[tuple[Place, int]], int]:
    """Uses sorted by their sentences, and how many there are in the text."""
    wanted = word.casefold()
    kept: list[tuple[int, int, Place, int]] = []  # a heap with the largest hash, negative, first
    total = 0
    for place in places:
        for position, token in enumerate(place.tokens):
            if token.casefold() == wanted:
                total += 1
                code = "\0".join([*place.tokens, str(position)]).encode("utf-8", "surrogatepass")
                entry = (-int.from_bytes(hashlib.blake2b(code, digest_size=8).digest()), -total, place, position)
                if len(kept) < most:
                    heapq.heappush(kept, entry)
                else:
                    heapq.heappushpop(kept, entry)
    found = [(place, position) for _, _, place, position in kept]
    return sorted(found, key=_by_sentence), total


def _by_sentence(use: tuple[Place, int]) -> tuple[list[str], int, str, int]:
    place, position = use
    return place.tokens, position, place.file, place.line


def _vectors(elmo: Embedder, space: Space, uses: Sequence[tuple[Place, int]]) -> Floats:
    """(uses, width): the vector of each use."""
    embedded = space.uses(elmo, (place for place, _ in uses))
    rows = [
        vectors[place.words.index(position)] for (place, vectors), (_, position) in zip(embedded, uses, strict=True)
    ]
    return np.stack(rows)


def nearby_words(use: Use) -> Iterator[str]:
    """The words near a use, without the word itself."""
    near = use.tokens[max(0, use.position - WINDOW) : use.position + WINDOW + 1]
    word = use.tokens[use.position].casefold()
    return (token.casefold() for token in near if is_word(token) and token.casefold() != word)


def typical_words(near: Counter[str], other: Counter[str], most: int = TYPICAL) -> list[str]:
    """The words that are more frequent here than elsewhere, by the log-likelihood ratio of their counts."""
    here, there = near.total(), other.total()

    def ratio(word: str) -> float:
        a, b = near[word], other[word]
        expected = [(a + b) * size / max(here + there, 1) for size in (here, there)]
        terms = (count * math.log(count / wanted) for count, wanted in zip((a, b), expected, strict=True) if count)
        return 2 * sum(terms)

    usual = [word for word in near if near[word] * max(there, 1) > other[word] * max(here, 1)]
    return sorted(usual, key=lambda word: (-ratio(word), word))[:most]

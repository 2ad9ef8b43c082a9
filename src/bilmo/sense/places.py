"""The sentences of a text, each with the file and the line in which it stands.

Knows: Embedder, text files. Blind to: vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import regex

from bilmo.embed.embedder import Embedder
from bilmo.ids.batch import Sentence
from bilmo.text.files import named_lines
from bilmo.text.offsets import offsets

HAS_LETTER = regex.compile(r"[\p{L}\p{N}]")


@dataclass(frozen=True)
class Place:
    """A sentence, and where it stands."""

    tokens: list[str]
    spaced: list[bool]
    """Whether white space follows each token."""
    file: str
    """Name of the file; of a file in a zip, both names."""
    line: int
    """Number of the line, from 1."""

    @property
    def words(self) -> list[int]:
        """The positions of the words: all tokens with a letter or a digit."""
        return [number for number, token in enumerate(self.tokens) if is_word(token)]

    def marked(self, position: int) -> str:
        """The sentence as it is written, with one token in square brackets: `He sat on the [bank] again`."""
        shown = [f"[{token}]" if number == position else token for number, token in enumerate(self.tokens)]
        return "".join(f"{token} " if space else token for token, space in zip(shown, self.spaced, strict=True))


def is_word(token: str) -> bool:
    """Whether a token has a letter or a digit."""
    return HAS_LETTER.search(token) is not None


def in_files(elmo: Embedder, paths: Iterable[Path]) -> Iterator[Place]:
    """The sentences of text files and folders, in their order; a blank line has none."""
    for name, lines in named_lines(paths):
        for number, line in enumerate(lines, start=1):
            yield from in_line(elmo, line, name, number)


def in_line(elmo: Embedder, line: str, file: str = "", number: int = 1) -> Iterator[Place]:
    """The sentences of one line."""
    return in_text(line, elmo.split(line), file, number)


def in_text(line: str, sentences: Iterable[Sentence], file: str = "", number: int = 1) -> Iterator[Place]:
    """The sentences of a text that is already split."""
    sentences = [sentence for sentence in sentences if sentence]
    places = offsets(line, chain.from_iterable(sentences))
    followers = [begin for begin, _ in places[1:]]
    spaced = [follower > end for (_, end), follower in zip(places, followers, strict=False)] + [False]
    at = 0
    for sentence in sentences:
        here = spaced[at : at + len(sentence)]
        yield Place(list(sentence), [*here[:-1], False], file, number)
        at += len(sentence)

"""Text in pieces of whole lines, each of which is split and numbered alone: in this process or in others.

Knows: text, numpy, workers. Blind to: files, how pieces become a corpus.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bilmo.text.dictionary import Dictionary
from bilmo.text.split import splitter
from bilmo.workers import Workers, check_number

Side = Literal["train", "held_out"]
SIDES: tuple[Side, ...] = ("train", "held_out")
PIECE = 1 << 20
"""Characters of a piece of the text: about half a second of work. It ends with a line."""


@dataclass(frozen=True)
class Piece:
    """Some lines of the text as numbers, which count the words of these lines only."""

    words: list[str]
    """Distinct words, by first occurrence."""
    counts: NDArray[np.int64]
    """Of each word in the training text."""
    ids: dict[Side, NDArray[np.uint32]]
    lengths: dict[Side, NDArray[np.int64]]
    """Of each sentence."""


Split = Callable[[list[str]], Piece]
Map = Callable[[Split, Iterable[list[str]]], Generator[Piece, None, None]]
"""Splits pieces of the text, anywhere, and gives the results in the order of the text."""


def one_process(split: Split, pieces: Iterable[list[str]]) -> Generator[Piece, None, None]:
    """Split in this process."""
    yield from map(split, pieces)


def processes(number: int) -> Map:
    """Split in several processes on this machine."""
    check_number(number)

    def mapped(split: Split, pieces: Iterable[list[str]]) -> Generator[Piece, None, None]:
        def work(piece: list[str]) -> Iterator[Piece]:
            yield split(piece)

        with Workers(number, work) as workers:
            yield from workers.map(pieces)

    return mapped if number > 1 else one_process


def pieces_of(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lines in pieces; none of them is kept."""
    piece, size = [], 0
    for line in lines:
        piece.append(line)
        size += len(line)
        if size >= PIECE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def split_piece(lines: list[str], *, lang: str, dictionary: Dictionary | None, held_out: float, seed: int) -> Piece:
    """Sentences of some lines, and the side of each line."""
    split = splitter(lang, dictionary)
    numbers: dict[str, int] = {}
    ids: dict[Side, array[int]] = {side: array("I") for side in SIDES}
    lengths: dict[Side, array[int]] = {side: array("q") for side in SIDES}
    for line in lines:
        side: Side = "held_out" if _share(line, seed) < held_out else "train"
        for sentence in split(line):
            ids[side].extend([numbers.setdefault(word, len(numbers)) for word in sentence])
            lengths[side].append(len(sentence))
    found = {side: np.array(ids[side], dtype=np.uint32) for side in SIDES}
    counts = np.bincount(found["train"], minlength=len(numbers))
    return Piece(list(numbers), counts, found, {side: np.array(lengths[side], dtype=np.int64) for side in SIDES})


def _share(line: str, seed: int) -> float:
    """A number from 0 to 1 that depends only on the text of the line and the seed."""
    digest = hashlib.blake2b(line.strip().encode("utf-8", "surrogatepass"), digest_size=8, key=str(seed).encode())
    return int.from_bytes(digest.digest()) / 2**64

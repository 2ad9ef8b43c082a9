"""Word vectors from files: GloVe and word2vec text, word2vec binary; plain, .gz or .xz.

Knows: the file formats. Blind to: networks.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from bilmo.errors import DamagedFile, TextError
from bilmo.ids.vocab import MARKS, Vocab, fits_a_line
from bilmo.text.files import byte_lines, open_bytes, unpacking_errors

LONGEST_WORD, LONGEST_LINE, WIDEST, MOST_DIGITS = 10_000, 10_000_000, 100_000, 18
"""Limits in bytes, bytes, numbers, and digits of the first line; beyond them it is not a file of word vectors."""


@dataclass(frozen=True)
class Vectors:
    """Words, and one vector per word."""

    words: list[str]
    values: NDArray[np.float32]
    """(words, width)"""

    @cached_property
    def lower(self) -> bool:
        """Whether the file has only lower-case words, so that words must be looked up in lower case."""
        return all(word == word.lower() for word in self.words)

    def table(self) -> tuple[Vocab, NDArray[np.float32]]:
        """A vocabulary and a table for a word encoder, with rows for the three marks in front, which are trained.

        `<UNK>` starts as the file's own vector for unknown words, or as the mean of all; the boundaries start as zero.
        """
        known = dict(zip(self.words, self.values, strict=True))
        unknown = next((known[name] for name in ("<unk>", "<UNK>") if name in known), self.values.mean(axis=0))
        zero = np.zeros_like(unknown)
        kept = [k for k, word in enumerate(self.words) if word not in MARKS and fits_a_line(word)]
        values = np.concatenate([np.stack([zero, zero, unknown]), self.values[kept]])
        return Vocab((*MARKS, *(self.words[k] for k in kept))), values.astype(np.float32)


def read(path: Path, only: Collection[str] | None = None, most: int | None = None) -> Vectors:
    """Read a file of word vectors, plain or compressed.

    only: the words to read; None for all. most: the maximum number of them.

    A word that occurs twice keeps its first vector.
    """
    wanted: Wanted = (lambda word: True) if only is None else only.__contains__
    words: list[str] = []
    rows: list[NDArray[np.float32]] = []
    seen: set[str] = set()
    try:
        with open_bytes(path) as file:
            for word, row in islice(_entries(path, file, wanted), most):
                if word not in seen:
                    seen.add(word)
                    words.append(word)
                    rows.append(row)
    except unpacking_errors() as error:
        raise DamagedFile(f"{path}: unpacking failed ({error}). The file is truncated or damaged.") from None
    if not words:
        what = "none of the requested words" if only is not None else "no word vectors"
        raise TextError(f"{path}: has {what}")
    values = np.stack(rows)
    if not np.isfinite(values).all():
        raise DamagedFile(f"{path}: some values are not finite numbers")
    return Vectors(words, values)


Entry = tuple[str, NDArray[np.float32]]
Wanted = Callable[[str], bool]

PEEK = 8192
"""Bytes that decide whether a file is text; the time for it grows with their square."""
TEXT_ENTRY = re.compile(rb"[^\n]+?(?:[ \t]+[-+.\deE]+){3}(?:\s|\Z)")
NARROW_ENTRY = {n: re.compile(rb"\S+(?:[ \t]+[-+.\deE]+){%d}(?:\s|\Z)" % n) for n in (1, 2)}
"""A word and its first numbers as text. Binary data almost never looks like three numbers in a row; with fewer numbers,
they must follow the first space, and the word must not have a space in it."""


def _entries(path: Path, file: IO[bytes], wanted: Wanted) -> Iterator[Entry]:
    """Words and vectors in file order; the numbers of unwanted words are not parsed."""
    lines = byte_lines(file, str(path), LONGEST_LINE)
    first = next(lines, b"")
    header = first.split()
    if not header:
        raise TextError(f"{path}: begins with an empty line; each line must have a word and its numbers")
    if len(header) != 2 or not all(part.isdigit() for part in header):  # GloVe: no header
        yield from _text(path, chain([first], lines), len(header) - 1, wanted)
        return
    if max(map(len, header)) > MOST_DIGITS:
        raise TextError(f"{path}: its first line has numbers of more than {MOST_DIGITS} digits; the file is damaged")
    number, width = map(int, header)  # word2vec: how many words, how wide
    if not 0 < width <= WIDEST:
        raise TextError(f"{path}: its first line declares vectors of width {width}; accepted: 1 to {WIDEST}")
    if NARROW_ENTRY.get(width, TEXT_ENTRY).match(cast("io.BufferedReader", file).peek()[:PEEK]):
        yield from _text(path, lines, width, wanted, number)
    else:
        yield from _binary(path, file, width, wanted, number)


def _text(path: Path, rows: Iterable[bytes], width: int, wanted: Wanted, number: int | None = None) -> Iterator[Entry]:
    """One word and its numbers per line; a word may have spaces in it, so the numbers are counted from the end."""
    count = 0
    for count, row in enumerate(rows, start=1):
        word, *numbers = row.rstrip().rsplit(None, width) or [b""]
        if len(numbers) != width or not width:
            raise TextError(
                f"{path}, vector {count}: {len(numbers)} numbers after the word; it must have {max(width, 1)}"
            )
        name = word.decode("utf-8", "replace")
        if wanted(name):
            try:
                with np.errstate(over="ignore"):  # values that do not fit become infinite, and are refused at the end
                    values = np.array([float(n) for n in numbers], dtype=np.float32)
            except ValueError:
                raise TextError(f"{path}, vector {count}: not all of the {width} values are numbers") from None
            yield name, values
    if number is not None and count != number:
        raise DamagedFile(f"{path}: its first line declares {number} words, but the file has {count}")


def _binary(path: Path, file: IO[bytes], width: int, wanted: Wanted, number: int) -> Iterator[Entry]:
    """A word, a space, its float32 values as bytes, and in some files a newline."""
    for count in range(1, number + 1):
        word = b""
        while (byte := file.read(1)) != b" ":
            word += byte
            if not byte or len(word) > LONGEST_WORD:
                raise DamagedFile(f"{path}: there is no word where vector {count} of {number} should begin")
        values = file.read(4 * width)
        if len(values) != 4 * width:
            raise DamagedFile(f"{path}: ends within vector {count} of {number}; the file is truncated")
        name = word.lstrip(b"\n").decode("utf-8", "replace")
        if wanted(name):
            yield name, np.frombuffer(values, dtype="<f4").astype(np.float32)

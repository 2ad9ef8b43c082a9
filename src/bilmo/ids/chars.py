"""A word as character ids: UTF-8 bytes as in the old systems, or Unicode characters in a table built from text.

Knows: numpy. Blind to: files, tensors, sentences.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bilmo.errors import VocabError

SENTENCE_BEGIN, SENTENCE_END, UNKNOWN = "<S>", "</S>", "<UNK>"
"""The three words that are marks; `<UNK>` in the input text is spelled out like any word."""

Ids = NDArray[np.int64]


class ByteChars:
    """The scheme of bilm-tf and AllenNLP: one UTF-8 byte is one character.

    Ids are those of the weight files: bytes 0 to 255, then five marks. (The old programs add 1 at prediction
    and prepend a row for "no token" to the table; a Batch contains only real words, so neither is needed.)

    >>> ByteChars(max_characters=50).ids("é")
    [258, 195, 169, 259]
    """

    rows = 261
    sentence_begin, sentence_end, word_begin, word_end, pad = 256, 257, 258, 259, 260

    def __init__(self, max_characters: int | None) -> None:
        self.max_characters = max_characters
        self._inside = None if max_characters is None else max_characters - 2  # two are the begin and end marks

    def cut(self, word: str) -> str:
        """The word to look up in a vocabulary: all of it, because only its bytes are cut."""
        return word

    def ids(self, word: str) -> list[int]:
        """Ids of one word, with its begin and end marks, without padding."""
        if word == SENTENCE_BEGIN:
            inside = [self.sentence_begin]
        elif word == SENTENCE_END:
            inside = [self.sentence_end]
        else:
            # As in the old programs, lone surrogates are dropped and the cut may split a character.
            inside = list(word.encode("utf-8", "ignore")[: self._inside])
        return [self.word_begin, *inside, self.word_end]


MARKS = ("<pad>", "<bow>", "<eow>", "<bos>", "<eos>", "<oov>")
"""Entries that every character table has: padding, begin and end of word, begin and end of sentence, unknown."""


class CharTable:
    """Unicode characters of any script; the id of a character is its place in `entries`.

    An entry is one character, one of MARKS, or "" for an id without a character.
    """

    def __init__(self, entries: Iterable[str], max_characters: int | None) -> None:
        self.entries = tuple(entries)
        self.max_characters = max_characters
        self._inside = None if max_characters is None else max_characters - 2  # two are the begin and end marks
        for number, entry in enumerate(self.entries, start=1):
            if len(entry) > 1 and entry not in MARKS:
                raise VocabError(
                    f"character table, line {number}: {entry[:40]!r} is neither one character, nor its code point, "
                    f"nor one of {' '.join(MARKS)}"
                )
        missing = [mark for mark in MARKS if mark not in self.entries]
        if missing:
            raise VocabError(
                f"the character table lacks {' '.join(missing)}; it needs each of {' '.join(MARKS)}. "
                "Restore the file, or build the table again from text."
            )
        self._lookup = {entry: id for id, entry in enumerate(self.entries)}
        self.rows = len(self.entries)
        self.pad = self._lookup["<pad>"]

    @classmethod
    def count(cls, words: Iterable[str], *, max_characters: int | None = 50, min_count: int = 1) -> CharTable:
        """Build a table from words: the characters that occur min_count times or more, most frequent first."""
        counts: Counter[str] = Counter()
        for word in words:
            counts.update(word)
        kept = [(-n, character) for character, n in counts.items() if n >= min_count]
        return cls((*MARKS, *(character for _, character in sorted(kept))), max_characters)

    def cut(self, word: str) -> str:
        """The word to look up in a vocabulary: cut to the characters that are read."""
        return word if word in (SENTENCE_BEGIN, SENTENCE_END) else word[: self._inside]

    def ids(self, word: str) -> list[int]:
        """Ids of one word, with its begin and end marks, without padding."""
        if word == SENTENCE_BEGIN:
            inside = [self._lookup["<bos>"]]
        elif word == SENTENCE_END:
            inside = [self._lookup["<eos>"]]
        else:
            unknown = self._lookup["<oov>"]
            inside = [self._lookup.get(character, unknown) for character in self.cut(word)]
        return [self._lookup["<bow>"], *inside, self._lookup["<eow>"]]

    def lines(self) -> list[str]:
        """One line per entry, in the order of ids; an invisible character is written as its code point."""
        return [
            f"U+{ord(entry):04X}" if len(entry) == 1 and (entry.isspace() or not entry.isprintable()) else entry
            for entry in self.entries
        ]

    @classmethod
    def from_lines(cls, lines: Iterable[str], *, max_characters: int | None) -> CharTable:
        """The table whose `lines` these are."""
        return cls((_character(line) for line in lines), max_characters)


def _character(line: str) -> str:
    """An entry from its line: the character itself, or its code point."""
    found = re.fullmatch(r"U\+([0-9A-F]{4,6})", line)
    return chr(int(found[1], 16)) if found and int(found[1], 16) <= sys.maxunicode else line


Chars = ByteChars | CharTable


def pad_words(chars: Chars, words: Sequence[Sequence[int]], widest_filter: int) -> Ids:
    """Ids of many words as one array (words, characters), with only as much padding as can affect the result.

    A filter gives the same value at every place that sees only padding, so under the max one such place is enough: the
    result is that of the full width, for a fraction of the work.
    """
    width = max(map(len, words), default=2) + widest_filter
    if chars.max_characters is not None:
        width = min(width, chars.max_characters)
    out = np.full((len(words), width), chars.pad, dtype=np.int64)
    for row, ids in zip(out, words, strict=True):
        row[: len(ids)] = ids
    return out

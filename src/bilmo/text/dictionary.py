"""A user's dictionary: words that the Chinese splitter always keeps whole, such as the names of a novel.

Knows: text files. Blind to: how other text is split.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import regex

from bilmo.errors import ConfigError, TextError
from bilmo.text.files import text_lines
from bilmo.text.simplified import simplified

LONGEST_WORD = 100
"""Characters of a word; no dictionary has longer ones, but a file that is not a dictionary has longer lines."""
HAN = regex.compile(r"\p{Han}")
INSIDE_WORD = regex.compile(r"(?!\p{Han})[\p{L}\p{M}\p{N}]")
"""A character of a script that writes words together, so a dictionary word is not cut out of a longer word."""
ACCEPTED = "a line is one word without spaces; a frequency and a tag may follow, as in jieba's dictionaries"


@dataclass(frozen=True)
class Dictionary:
    """Words in a fixed order, each once. Traditional and simplified spellings of a word find each other."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, words: Iterable[str]) -> Dictionary:
        """A dictionary of words in any order."""
        return cls(tuple(sorted(set(words))))

    @property
    def sha256(self) -> str:
        """The identity of the dictionary, which does not depend on the order or the name of its file."""
        return hashlib.sha256("\n".join(self.words).encode("utf-8", "surrogatepass")).hexdigest()

    @cached_property
    def _spellings(self) -> frozenset[str]:
        return frozenset(simplified(word) for word in self.words)

    @cached_property
    def _lengths(self) -> dict[str, list[int]]:
        """The lengths of the words that start with a character, the longest first."""
        found: dict[str, set[int]] = {}
        for word in self._spellings:
            found.setdefault(word[:1], set()).add(len(word))
        return {first: sorted(lengths, reverse=True) for first, lengths in found.items()}

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where words begin and end in simplified text, from left to right; of several words, the longest."""
        begin = 0
        while begin < len(text):
            ends = (begin + length for length in self._lengths.get(text[begin], ()))
            end = next((end for end in ends if self._is_word(text, begin, end)), None)
            if end is None:
                begin += 1
            else:
                yield begin, end
                begin = end

    def _is_word(self, text: str, begin: int, end: int) -> bool:
        return text[begin:end] in self._spellings and not any(
            0 < at < len(text) and INSIDE_WORD.match(text, at - 1) and INSIDE_WORD.match(text, at)
            for at in (begin, end)
        )


def read(path: Path) -> Dictionary:
    """The words of a file, one per line; blank lines are ignored, and so are frequencies and tags."""
    words = []
    for number, line in enumerate(text_lines(path), start=1):
        if line.strip():
            words.append(_word(line.split(), f"{path}, line {number}"))
    if not words:
        raise TextError(f"{path}: the dictionary has no words; {ACCEPTED}")
    return Dictionary.of(words)


def _word(fields: list[str], where: str) -> str:
    word, rest = fields[0], fields[1:]
    if rest and rest[0].isdecimal():
        rest = rest[1:]
        tagged = True
    else:
        tagged = bool(HAN.search(word))  # else `new york` would be a word and its tag
    if rest and tagged and rest[0].isascii() and rest[0].islower():
        rest = rest[1:]
    if rest:
        raise TextError(f"{where}: found {' '.join(fields)!r:.80}, which is not one word; {ACCEPTED}")
    if len(word) > LONGEST_WORD:
        raise TextError(
            f"{where}: a word has {len(word):,} characters; a dictionary has words of at most {LONGEST_WORD}"
        )
    return word


def check_lang(lang: str) -> None:
    """Refuse a dictionary for text that is not split as Chinese, where it would have no effect."""
    if lang not in ("auto", "zh"):
        raise ConfigError(
            f"a dictionary was given, but the text is split with lang {lang!r}; only lang 'zh' (Chinese) uses a "
            "dictionary. Leave it out, or choose lang zh."
        )

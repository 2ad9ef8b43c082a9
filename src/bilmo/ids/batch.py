"""Sentences as a Batch: each distinct word once, and the places where it occurs.

Knows: chars, vocab, numpy. Blind to: files, tensors, the network.
"""

# B sentences, T tokens with both boundaries, U distinct words, C characters

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from bilmo.errors import TextError
from bilmo.ids.chars import SENTENCE_BEGIN, SENTENCE_END, UNKNOWN, Chars, Ids, pad_words
from bilmo.ids.vocab import Vocab

Sentence = Sequence[str]
Key = tuple[tuple[int, ...], int]
"""All that the network sees of a word: its character ids and its word id (empty and -1 if not used)."""


@dataclass(frozen=True)
class Words:
    """The distinct words of a batch as arrays for the word encoder."""

    chars: Ids | None
    """(U, C); None for an encoder without characters."""
    ids: Ids | None
    """(U,) rows of the word table; None for an encoder without a table."""


@dataclass(frozen=True)
class Places:
    """Where the distinct words of a batch occur; both directions read the same words, each in its own order."""

    forward: Ids
    """(B, T): the number of the word at each step of the forward stack."""
    backward: Ids
    """(B, T): the same for the backward stack; for whole sentences, `forward` reversed row by row."""
    lengths: Ids
    """(B,): steps of each row, boundaries included; the rest of a row is padding."""


@dataclass(frozen=True)
class Batch(Places):
    """The places of a batch with its words."""

    words: Words


@dataclass(frozen=True)
class Indexer:
    """Turns sentences into batches with the characters and the vocabulary of a model."""

    chars: Chars | None
    vocab: Vocab | None
    """None unless the word encoder has a table of words."""
    lower: bool = False
    """Look words up in lower case, because the word vectors have no other."""
    widest_filter: int = 1

    def key(self, word: str) -> Key:
        """Two words with the same key are the same to the network."""
        characters = tuple(self.chars.ids(word)) if self.chars else ()
        return characters, self.vocab.ids([self._entry(word)])[0] if self.vocab else -1

    def _entry(self, word: str) -> str:
        if word in (SENTENCE_BEGIN, SENTENCE_END):
            return word
        cut = self.chars.cut(word) if self.chars else word
        if cut in (SENTENCE_BEGIN, SENTENCE_END):  # the start of a longer word, not a boundary
            return UNKNOWN
        return cut.lower() if self.lower else cut

    def words(self, keys: Sequence[Key]) -> Words:
        """Arrays for the word encoder."""
        chars = pad_words(self.chars, [k[0] for k in keys], self.widest_filter) if self.chars else None
        ids = np.array([k[1] for k in keys], dtype=np.int64) if self.vocab else None
        return Words(chars, ids)

    def batch(self, sentences: Sequence[Sentence]) -> Batch:
        """A batch of whole sentences, each between its boundaries."""
        keys, places = self.places(sentences)
        return Batch(places.forward, places.backward, places.lengths, self.words(keys))

    def places(self, sentences: Sequence[Sentence]) -> tuple[list[Key], Places]:
        """The keys of the distinct words, and where each of them occurs."""
        rows = [(SENTENCE_BEGIN, *sentence, SENTENCE_END) for sentence in sentences]
        numbers: dict[Key, int] = {}
        number = {
            word: numbers.setdefault(self.key(word), len(numbers)) for word in dict.fromkeys(chain.from_iterable(rows))
        }
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        forward = np.zeros((len(rows), max(lengths, default=0)), dtype=np.int64)
        backward = np.zeros_like(forward)
        for k, row in enumerate(rows):
            forward[k, : len(row)] = [number[word] for word in row]
            backward[k, : len(row)] = forward[k, : len(row)][::-1]
        return list(numbers), Places(forward, backward, lengths)


def listed(sentences: Iterable[Sentence]) -> list[Sentence]:
    """Sentences as a list. Each must be a list of words: a plain string would be read letter by letter."""
    if isinstance(sentences, str):
        raise TextError("sentences must be a list of lists of words; found one string. Split it first: [text.split()]")
    return [_words(number, sentence, "sentence") for number, sentence in enumerate(_rows(sentences, "sentences"))]


def each_text(texts: Iterable[str] | Iterable[Sentence]) -> Iterator[str | Sentence]:
    """Texts, or sentences that are lists of words, one after the other."""
    rows = enumerate(_rows(texts, "texts"))
    return (text if isinstance(text, str) else _words(number, text, "text") for number, text in rows)


def _rows(given: Any, name: str) -> Iterable[Any]:
    """Several texts, as a user may give them: a list, an iterator, an array, a column of a table."""
    if hasattr(given, "columns"):
        advice = "Choose one of its columns"
    elif isinstance(given, bytes | bytearray):
        advice = "Decode it first: data.decode('utf-8')"
    elif isinstance(given, Mapping):
        advice = "Give its values as a list: list(texts.values())"
    elif isinstance(given, set | frozenset):
        advice = "A set has no order; give a list: sorted(texts)"
    else:
        for convert in ("to_pylist", "tolist"):  # of pyarrow; of numpy and pandas
            if hasattr(given, convert):
                given = getattr(given, convert)()
                break
        if isinstance(given, Iterable):
            return given
        advice = "Put a single one into a list"
    found = "None" if given is None else f"{_a(given)}: {_short(given)}"
    raise TextError(
        f"{name} is {found}; accepted: a list, an array or a column of texts, or of sentences that are lists of words. "
        f"{advice}."
    )


def _words(number: int, sentence: Any, name: str) -> Sentence:
    """One sentence as a list of words."""
    if hasattr(sentence, "tolist"):
        sentence = sentence.tolist()
    if isinstance(sentence, str | bytes | bytearray) or not isinstance(sentence, Sequence):
        accepted = "a list of words, such as ['The', 'cat']"
        accepted = accepted if name == "sentence" else f"a string, or {accepted}"
        raise TextError(f"{name} {number} is {_a(sentence)}: {_short(sentence)}; it must be {accepted}")
    for word in sentence:
        if not isinstance(word, str):
            raise TextError(f"{name} {number} contains {_short(word)} ({type(word).__name__}); words must be strings")
    return sentence


def _short(thing: object) -> str:
    """A thing as it is shown in a message, in one line."""
    return " ".join(repr(thing).split())[:40]


def _a(thing: object) -> str:
    """The type of a thing, with its article."""
    name = type(thing).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def by_length(lengths: Sequence[int], budget: int, rows: int = 1) -> Iterator[list[int]]:
    """Numbers of sentences in groups of similar length, each of at most `budget` tokens (or one sentence).

    A group of long sentences, none longer than the budget, may have up to `rows` of them: a step costs about the same
    for one row as for a few. Every number occurs exactly once; the caller restores the order.
    """
    order = sorted(range(len(lengths)), key=lambda k: -lengths[k])
    group: list[int] = []
    tokens = 0
    for k in order:
        cost = lengths[k] + 2  # both boundaries are steps too
        room = budget if len(group) >= rows else rows * budget
        if group and tokens + cost > room:
            yield group
            group, tokens = [], 0
        group.append(k)
        tokens += cost
    if group:
        yield group

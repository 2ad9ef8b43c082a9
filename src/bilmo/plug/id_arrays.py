"""Sentences as one array of integers (sentences, tokens, characters), for libraries whose inputs are arrays.

The row of a token has its character ids plus 1, then zeros; if the model has a table of words, the id of the word plus
1 comes first. For models of bytes, this is AllenNLP's scheme with zeros instead of its padding character.

Knows: Indexer, Batch. Blind to: tensors, every library.
"""

# B sentences, T tokens, C numbers of a token, U distinct words

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bilmo.errors import TextError
from bilmo.ids.batch import Batch, Indexer, Sentence, Words
from bilmo.ids.chars import SENTENCE_BEGIN, SENTENCE_END, Ids


@dataclass(frozen=True)
class IdArrays:
    """The sizes needed to turn arrays into batches; its fields are plain numbers, so that it can be saved as JSON."""

    begin: tuple[int, ...]
    """The row of the begin mark of a sentence."""
    end: tuple[int, ...]
    table: bool
    """Whether the id of the word comes first."""
    pad: int | None
    """The character that stands for padding; None for a model without characters."""
    max_characters: int | None
    widest_filter: int

    @classmethod
    def of(cls, indexer: Indexer) -> Self:
        """For the ids of this indexer."""
        chars = indexer.chars
        return cls(
            tuple(_row(indexer, SENTENCE_BEGIN)),
            tuple(_row(indexer, SENTENCE_END)),
            indexer.vocab is not None,
            None if chars is None else chars.pad,
            None if chars is None else chars.max_characters,
            indexer.widest_filter,
        )

    def batch(self, ids: NDArray[Any]) -> Batch:
        """(B, T, C) to a batch; the tokens of a sentence must come before its padding."""
        real: NDArray[np.bool_] = np.any(ids != 0, axis=2)  # (B, T)
        if (real[:, 1:] & ~real[:, :-1]).any():
            raise TextError("the padding of a sentence must come after its tokens; pad on the right")
        lengths = real.sum(axis=1)
        size = max(ids.shape[2], len(self.begin), len(self.end))
        rows = np.zeros((2 + int(lengths.sum()), size), dtype=np.int64)
        rows[0, : len(self.begin)], rows[1, : len(self.end)] = self.begin, self.end
        rows[2:, : ids.shape[2]] = ids[real]
        found, numbers = np.unique(rows, axis=0, return_inverse=True)
        numbers = numbers.reshape(-1)
        forward = np.zeros((len(ids), int(max(lengths, default=0)) + 2), dtype=np.int64)
        backward = np.zeros_like(forward)
        at = 2
        for row, length in enumerate(lengths):
            here = [numbers[0], *numbers[at : at + length], numbers[1]]
            forward[row, : len(here)], backward[row, : len(here)] = here, here[::-1]
            at += length
        return Batch(forward, backward, (lengths + 2).astype(np.int64), self._words(found))

    def _words(self, rows: Ids) -> Words:
        """Distinct rows (U, C) as arrays for the word encoder."""
        words = rows[:, 0] - 1 if self.table else None
        if self.pad is None:
            return Words(None, words)
        spelled = rows[:, 1:] if self.table else rows
        used = int((spelled != 0).sum(axis=1).max()) + self.widest_filter
        used = used if self.max_characters is None else min(used, self.max_characters)
        chars = np.full((len(spelled), used), self.pad, dtype=np.int64)
        kept = spelled[:, :used]
        chars[:, : kept.shape[1]] = np.where(kept > 0, kept - 1, self.pad)
        return Words(chars, words)


def id_array(indexer: Indexer, sentences: Sequence[Sentence]) -> Ids:
    """(B, T, C): sentences as an array; C is the largest that the model allows, or that of the longest word."""
    known = {word: _row(indexer, word) for word in {word for sentence in sentences for word in sentence}}
    chars = indexer.chars
    size = max(map(len, known.values()), default=1)
    if chars is not None and chars.max_characters is not None:
        size = chars.max_characters + (indexer.vocab is not None)
    found = np.zeros((len(sentences), max(map(len, sentences), default=0), size), dtype=np.int64)
    for row, sentence in enumerate(sentences):
        for place, word in enumerate(sentence):
            found[row, place, : len(known[word])] = known[word]
    return found


def _row(indexer: Indexer, word: str) -> list[int]:
    characters, number = indexer.key(word)
    return [*([number + 1] if indexer.vocab is not None else []), *(id + 1 for id in characters)]

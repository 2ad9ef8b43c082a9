"""Word probabilities from counts: what a new softmax starts with, and how it learns of unknown words.

If the vocabulary has every word of the text, nothing in the text teaches the softmax that new text has unknown words.
The number of words that occur once shows how many to expect: as in Ney's absolute discounting, every word gives the
same part of one occurrence to the unknown word.

Knows: numpy, torch. Blind to: networks.
"""

# W distinct words of the text, V words of the softmax, N positions

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilmo.ids.chars import Ids


class Prior:
    """How often to expect each word, and which occurrences stand for unknown words."""

    def __init__(self, counts: NDArray[np.int64], ids: Ids, unknown: int) -> None:
        """`counts` (W,) of words whose ids in the softmax are `ids` (W,); words without a row have the id `unknown`."""
        self._counts, self._ids, self._unknown = counts, ids, unknown
        seen = counts > 0
        known = unknown not in ids[seen]
        self._hidden = np.where(seen & known, discount(counts) / np.maximum(counts, 1), 0.0)
        """(W,): the share of a word's occurrences that count as unknown."""

    def targets(self, words: Ids, random: np.random.Generator) -> Ids:
        """Words of the text (N,) as targets of a training step: ids of the softmax, some replaced by unknown."""
        return np.where(random.random(len(words)) < self._hidden[words], self._unknown, self._ids[words])

    def log_shares(self, more: dict[int, float], size: int) -> Tensor:
        """Log of the share of each of `size` words, (V,); `more` has counts of ids that are not words of the text."""
        shares = np.bincount(self._ids, self._counts * (1 - self._hidden), minlength=size)
        shares[self._unknown] += (self._counts * self._hidden).sum()
        for id, count in more.items():
            shares[id] += count
        shares += 1  # for words of the softmax that do not occur in the text
        return torch.from_numpy(np.log(shares / shares.sum()))


def discount(counts: NDArray[np.int64]) -> float:
    """The part of one occurrence that every word gives up: n1 / (n1 + 2 n2), from words that occur once and twice."""
    once, twice = (int((counts == n).sum()) for n in (1, 2))
    return once / (once + 2 * twice) if once else 0.0

"""What the counts of a text say about its words, before anything is known of their order.

Where the vocabulary holds every word of the text, nothing in it would teach the softmax that new text has words which
were never seen. How many there will be is told by those that were seen once: as in the absolute discounting of Ney,
every word gives up a part of one occurrence, the same for all, to the unknown word.

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
    """How often each word is to be expected, and which occurrences stand for words that were never seen."""

    def __init__(self, counts: NDArray[np.int64], ids: Ids, unknown: int) -> None:
        """`counts` (W,) of words whose ids in the softmax are `ids` (W,); words that it does not have are `unknown`."""
        self._counts, self._ids, self._unknown = counts, ids, unknown
        seen = counts > 0
        known = unknown not in ids[seen]
        self._hidden = np.where(seen & known, discount(counts) / np.maximum(counts, 1), 0.0)
        """(W,): the share of a word's occurrences that is given up."""

    def targets(self, words: Ids, random: np.random.Generator) -> Ids:
        """Words of the text (N,) as a step of training sees them: ids of the softmax, some of them unknown."""
        return np.where(random.random(len(words)) < self._hidden[words], self._unknown, self._ids[words])

    def log_shares(self, more: dict[int, float], size: int) -> Tensor:
        """Log of the share that each of `size` words has, (V,); `more`: counts of ids that the text does not tell."""
        shares = np.bincount(self._ids, self._counts * (1 - self._hidden), minlength=size)
        shares[self._unknown] += (self._counts * self._hidden).sum()
        for id, count in more.items():
            shares[id] += count
        shares += 1  # words of a softmax that do not occur here
        return torch.from_numpy(np.log(shares / shares.sum()))


def discount(counts: NDArray[np.int64]) -> float:
    """The part of one occurrence that every word gives up: n1 / (n1 + 2 n2), of words seen once and twice."""
    once, twice = (int((counts == n).sum()) for n in (1, 2))
    return once / (once + 2 * twice) if once else 0.0

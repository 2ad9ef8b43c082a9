"""A plain 5-gram model with interpolated, modified Kneser-Ney smoothing, as a baseline for language models.

Every n-gram is a number: the index of its context among the contexts of that length, times the size of the
vocabulary, plus its last word. Counting n-grams is then sorting numbers.
"""

# N positions, V words

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bilmo.ids.vocab import Vocab
from bilmo.training.corpus import Corpus

Ints = NDArray[np.int64]
N = 5
"""Length of the longest n-gram. N - 1 marks precede each sentence, so that its first words have full n-grams."""


@dataclass(frozen=True)
class Order:
    """All n-grams of one length that occur in the text."""

    keys: Ints
    """Sorted: index of the context times V, plus the last word."""
    p: NDArray[np.float64]
    """Probability of each n-gram after the discount, without the part of the shorter context."""
    rest: NDArray[np.float64]
    """For each n-gram as a context: the probability that is passed on to the shorter context."""


class KneserNey:
    """p(word | the words before it)."""

    def __init__(self, ids: Ints, words: int) -> None:
        """`ids`: the text as one row of ids below `words`, boundaries included."""
        self._words = words
        keys: list[Ints] = []
        counts: list[Ints] = []
        numbers = np.zeros(len(ids), dtype=np.int64)  # the context that ends before each position
        for order in range(1, N + 1):
            at = ids[order - 1 :]
            mine = numbers[: len(at)] * words + at
            found, place, count = np.unique(mine, return_inverse=True, return_counts=True)
            keys.append(found)
            counts.append(count)
            numbers = place[:-1]
            # From here on `numbers[k]` is the n-gram that starts at k; with the next word it is one order longer.
        self._orders = self._smoothed(keys, counts, ids)

    @classmethod
    def of(cls, corpus: Corpus, vocab: Vocab) -> KneserNey:
        """A model of a training text, with N - 1 times `<S>` before each sentence and `</S>` after it."""
        text = corpus.text("train")
        marks = N * np.arange(len(text.ends)) + N - 1  # marks before the words of each sentence
        ids = np.array(vocab.ids(corpus.words), dtype=np.int64)[np.asarray(text.ids)]
        row = np.full(len(ids) + N * len(text.ends), vocab.begin, dtype=np.int64)
        row[np.arange(len(ids)) + np.repeat(marks, np.diff(text.ends, prepend=0))] = ids
        row[text.ends + marks] = vocab.end
        return cls(row, len(vocab))

    def _smoothed(self, keys: list[Ints], counts: list[Ints], ids: Ints) -> list[Order]:
        orders = []
        suffix = self._suffixes(keys, ids)
        for order in range(N):
            # The longest n-grams count by their frequency, shorter ones by the number of different words before them.
            count = counts[order] if order == N - 1 else np.bincount(suffix[order + 1], minlength=len(keys[order]))
            d = _discounts(count)
            context = keys[order] // self._words
            size = len(keys[order - 1]) if order else 1
            total = np.bincount(context, weights=count, minlength=size)
            total[total == 0] = 1
            taken = np.take(d, np.minimum(count, 3))
            p = (count - taken) / total[context]
            rest = np.bincount(context, weights=taken, minlength=size) / total
            rest[np.bincount(context, minlength=size) == 0] = 1.0  # a context that never occurred passes everything on
            orders.append(Order(keys[order], p, rest))
        return orders

    def _suffixes(self, keys: list[Ints], ids: Ints) -> list[Ints]:
        """For each n-gram, the index of the same n-gram without its first word."""
        found: list[Ints] = [np.zeros(0, dtype=np.int64)]
        for order in range(1, N):
            context, word = keys[order] // self._words, keys[order] % self._words
            shorter = found[order - 1][context] if order > 1 else np.zeros(len(context), dtype=np.int64)
            found.append(np.searchsorted(keys[order - 1], shorter * self._words + word))
        return found

    def log_probs(self, ids: Ints, first: int) -> NDArray[np.float64]:
        """Natural log-probability of each of `ids` from position `first` on, given up to N - 1 words before it."""
        p = np.full(len(ids), 1 / self._words)
        context = np.zeros(len(ids), dtype=np.int64)  # index of the context among those of its length; -1: unseen
        # The context of length k before position i is the n-gram that ends at i - 1.
        ends = np.zeros(len(ids), dtype=np.int64)
        for k, order in enumerate(self._orders):
            context = np.zeros(len(ids), dtype=np.int64) if k == 0 else np.concatenate([[-1], ends[:-1]])
            known = context >= 0
            p = np.where(known, p * order.rest[np.maximum(context, 0)], p)
            key = np.where(known, context, 0) * self._words + ids
            place = np.minimum(np.searchsorted(order.keys, key), len(order.keys) - 1)
            seen = known & (order.keys[place] == key)
            p = p + np.where(seen, order.p[place], 0.0)
            ends = np.where(seen, place, -1)
        return np.asarray(np.log(p[first:]))


def _discounts(count: Ints) -> NDArray[np.float64]:
    """Discounts for n-grams that occur once, twice, and more often (Chen and Goodman)."""
    n = [int((count == k).sum()) for k in (1, 2, 3, 4)]
    if not all(n):
        return np.array([0.0, 0.5, 0.75, 0.9])
    y = n[0] / (n[0] + 2 * n[1])
    return np.array([0.0, 1 - 2 * y * n[1] / n[0], 2 - 3 * y * n[2] / n[1], 3 - 4 * y * n[3] / n[2]])


def perplexity(model: KneserNey, sentences: Iterable[list[str]], vocab: Vocab) -> float:
    """Over every word and one boundary per sentence; each sentence by itself."""
    total, count = 0.0, 0
    for sentence in sentences:
        ids = [vocab.begin] * (N - 1) + vocab.ids(sentence) + [vocab.end]
        scores = model.log_probs(np.array(ids), N - 1)
        total -= scores.sum()
        count += len(scores)
    return float(np.exp(total / count))

"""One vector per word, averaged over the uses of the word in a text.

Knows: Embedder. Blind to: neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from bilmo.embed.embedder import Embedder
from bilmo.embed.word_space import whitened
from bilmo.ids.batch import Sentence

BATCH_SENTENCES = 512
"""Number of sentences embedded at a time."""


@dataclass(frozen=True)
class WordVectors:
    """Words and one vector per word."""

    words: list[str]
    values: NDArray[np.float32]
    """(words, width)"""


def in_text(elmo: Embedder, sentences: Iterable[Sentence], *, least: int) -> WordVectors:
    """The mean of all layers, averaged over all uses of a word, ready to be compared.

    Words with fewer than `least` uses are left out.
    """
    numbers: dict[str, int] = {}
    sums = np.zeros((1024, elmo.config.vector_width))
    counts = np.zeros(1024)
    remaining = iter(sentences)
    while some := list(islice(remaining, BATCH_SENTENCES)):
        ids = np.array([numbers.setdefault(word, len(numbers)) for sentence in some for word in sentence], dtype=int)
        while len(counts) < len(numbers):
            sums, counts = np.concatenate([sums, np.zeros_like(sums)]), np.concatenate([counts, np.zeros_like(counts)])
        np.add.at(sums, ids, np.concatenate(elmo.embed(some, mix="mean")))
        np.add.at(counts, ids, 1)
    kept = [n for n in range(len(numbers)) if counts[n] >= least]
    words = list(numbers)
    means = (sums[kept] / counts[kept, None]).astype(np.float32)
    return WordVectors([words[n] for n in kept], whitened(means) if kept else means)

"""A vector for each word: by its spelling alone, or averaged over its uses in a text.

Knows: Embedder. Blind to: neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from bilmo.embed.embedder import Embedder
from bilmo.ids.batch import Sentence

AT_ONCE = 512
"""Sentences, or words, embedded at a time."""


@dataclass(frozen=True)
class WordVectors:
    """Words and a vector for each."""

    words: list[str]
    values: NDArray[np.float32]
    """(words, width)"""


def alone(elmo: Embedder, words: Sequence[str]) -> WordVectors:
    """Layer 0: what a word's spelling, or its row in the table, says of it."""
    width = elmo.config.width
    parts = [elmo.layers([words[at : at + AT_ONCE]])[0][0, :, :width] for at in range(0, len(words), AT_ONCE)]
    return WordVectors(list(words), np.concatenate(parts))


def in_text(elmo: Embedder, sentences: Iterable[Sentence], *, least: int) -> WordVectors:
    """The mean of all layers, averaged over all uses of a word; words used fewer than `least` times are left out."""
    numbers: dict[str, int] = {}
    sums = np.zeros((1024, elmo.config.vector_width))
    counts = np.zeros(1024)
    rest = iter(sentences)
    while some := list(islice(rest, AT_ONCE)):
        ids = np.array([numbers.setdefault(word, len(numbers)) for sentence in some for word in sentence], dtype=int)
        while len(counts) < len(numbers):
            sums, counts = np.concatenate([sums, np.zeros_like(sums)]), np.concatenate([counts, np.zeros_like(counts)])
        np.add.at(sums, ids, np.concatenate(elmo.embed(some, mix="mean")))
        np.add.at(counts, ids, 1)
    kept = [n for n in range(len(numbers)) if counts[n] >= least]
    words = list(numbers)
    return WordVectors([words[n] for n in kept], (sums[kept] / counts[kept, None]).astype(np.float32))

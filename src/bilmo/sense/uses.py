"""A vector for each word: by the model's own rows for it, or averaged over its uses in a text.

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
from bilmo.ids.vocab import MARKS

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


def of_vocabulary(elmo: Embedder, most: int, word: str | None = None) -> WordVectors:
    """The model's own vectors of its `most` first words, and of `word`, wherever it is.

    What a word is when it is read (layer 0) knows its spelling; what it is when it is predicted (its row of the
    softmax) knows the company it keeps. Where there are rows for all of the words, each vector is both in a row.
    """
    vocab = elmo.bundle.vocab
    assert vocab is not None
    words = [entry for entry in vocab.words[:most] if entry and entry not in MARKS]
    if word is not None and word not in words:
        words.append(word)
    read = alone(elmo, words)
    if not elmo.bundle.has_softmax or words[-1] not in vocab:
        return read
    predicted = elmo.bundle.weights["softmax.weight"][vocab.ids(words)].float().numpy()
    return WordVectors(words, np.concatenate([centred(read.values), centred(predicted)], axis=1))


def centred(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Without their mean, and of length 1.

    The vectors of a language model share a large common part, which makes any two of them look alike; taking their
    mean away shows what is a word's own.
    """
    values = values - values.mean(axis=0)
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(values / np.maximum(lengths, 1e-12), dtype=np.float32)


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

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
READ = 0.5
"""How much of a word's likeness is that of being read; the other part is that of being predicted, and counts 1."""


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
    """The model's own vectors of its `most` first words, and of `word`, wherever it is, made to be compared.

    What a word is when it is read (layer 0) knows its spelling; what it is when it is predicted (its row of the
    softmax) knows the company it keeps. Where there are rows for all of the words, each vector is both in a row.
    """
    vocab = elmo.bundle.vocab
    assert vocab is not None
    words = [entry for entry in vocab.words[:most] if entry and entry not in MARKS]
    if word is not None and word not in words:
        words.append(word)
    read = whitened(alone(elmo, words).values)
    if not elmo.bundle.has_softmax or words[-1] not in vocab:
        return WordVectors(words, read)
    predicted = elmo.bundle.weights["softmax.weight"][vocab.ids(words)].float().numpy()
    return WordVectors(words, np.concatenate([READ * read, unit(predicted - predicted.mean(axis=0))], axis=1))


def in_text(elmo: Embedder, sentences: Iterable[Sentence], *, least: int) -> WordVectors:
    """The mean of all layers, averaged over all uses of a word, made to be compared.

    Words that are used fewer than `least` times are left out.
    """
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
    means = (sums[kept] / counts[kept, None]).astype(np.float32)
    return WordVectors([words[n] for n in kept], whitened(means) if kept else means)


def whitened(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Centred, all directions made to count alike, each vector of length 1.

    The vectors of a language model share a large common part, and a few directions (how frequent a word is, how long,
    how it is written) in which they differ most; both make words look alike that are not. How far each direction is
    evened out depends on how well so many words can tell: with few, vectors are hardly more than centred.
    """
    values = values - values.mean(axis=0)
    number, width = values.shape
    spreads, directions = np.linalg.eigh(values.T @ values / number)
    doubt = max(width / number * spreads.sum() / min(number, width), 1e-12)
    values = values @ directions / np.sqrt(np.maximum(spreads, 0) + doubt)
    return unit(values)


def unit(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors of length 1; one that is zero stays so."""
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(values / np.maximum(lengths, 1e-12), dtype=np.float32)

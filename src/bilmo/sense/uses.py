"""One vector per word: from the model's own weights, or averaged over the uses of the word in a text.

Knows: Embedder. Blind to: neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from bilmo.embed.embedder import Embedder
from bilmo.ids.batch import Sentence
from bilmo.ids.vocab import MARKS

BATCH = 512
"""Number of sentences embedded at a time."""
LAYER_0_SHARE = 0.5
"""Weight of a word's layer-0 vector beside its softmax row, which counts 1."""


@dataclass(frozen=True)
class WordVectors:
    """Words and one vector per word."""

    words: list[str]
    values: NDArray[np.float32]
    """(words, width)"""


def of_vocabulary(elmo: Embedder, most: int, word: str | None = None) -> WordVectors:
    """The model's own vectors of the first `most` words of its vocabulary, and of `word`, ready to be compared.

    Layer 0 reflects the spelling of a word; its softmax row reflects the contexts it occurs in. If every word has a
    softmax row, a vector is both, side by side; else it is layer 0 alone.
    """
    vocab = elmo.bundle.vocab
    assert vocab is not None
    words = [entry for entry in vocab.words[:most] if entry and entry not in MARKS]
    if word is not None and word not in words:
        words.append(word)
    spelled = whitened(elmo.word_vectors(words))
    if not elmo.bundle.has_softmax or words[-1] not in vocab:
        return WordVectors(words, spelled)
    predicted = elmo.bundle.weights["softmax.weight"][vocab.ids(words)].float().numpy()
    return WordVectors(
        words, np.concatenate([LAYER_0_SHARE * spelled, unit(predicted - predicted.mean(axis=0))], axis=1)
    )


def in_text(elmo: Embedder, sentences: Iterable[Sentence], *, least: int) -> WordVectors:
    """The mean of all layers, averaged over all uses of a word, ready to be compared.

    Words with fewer than `least` uses are left out.
    """
    numbers: dict[str, int] = {}
    sums = np.zeros((1024, elmo.config.vector_width))
    counts = np.zeros(1024)
    remaining = iter(sentences)
    while some := list(islice(remaining, BATCH)):
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
    """Centred vectors of length 1 in which all directions count equally (whitening).

    The vectors of a language model share a large common part, and differ most in a few directions (frequency, length,
    spelling). Both make unrelated words look similar. The fewer words there are, the less reliable the variance of a
    direction is, and the less it is equalised: few vectors are hardly more than centred.
    """
    values = values - values.mean(axis=0)
    number, width = values.shape
    spreads, directions = np.linalg.eigh(values.T @ values / number)
    smoothing = max(width / number * spreads.sum() / min(number, width), 1e-12)
    values = values @ directions / np.sqrt(np.maximum(spreads, 0) + smoothing)
    return unit(values)


def unit(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors of length 1; a zero vector stays zero."""
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(values / np.maximum(lengths, 1e-12), dtype=np.float32)

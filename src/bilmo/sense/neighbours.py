"""The words nearest to a word, by cosine of centred vectors.

The vectors of a language model share a large common part, which makes any two of them look alike; taking their mean
away shows what is a word's own.

Knows: WordVectors. Blind to: models, text.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bilmo.sense.uses import WordVectors


def centred(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Without their mean, and of length 1."""
    values = values - values.mean(axis=0)
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(values / np.maximum(lengths, 1e-12), dtype=np.float32)


def nearest(vectors: WordVectors, word: str, most: int) -> list[tuple[str, float]]:
    """Up to `most` other words and their cosines, the nearest first. The word must be among the vectors."""
    values = centred(vectors.values)
    here = vectors.words.index(word)
    cosines = values @ values[here]
    order = np.argsort(-cosines, kind="stable")
    return [(vectors.words[n], float(cosines[n])) for n in order if n != here][:most]

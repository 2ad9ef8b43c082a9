"""The words nearest to a word, by cosine.

Knows: WordVectors. Blind to: models, text.
"""

from __future__ import annotations

import numpy as np

from bilmo.sense.uses import WordVectors


def nearest(vectors: WordVectors, word: str, most: int) -> list[tuple[str, float]]:
    """Up to `most` other words and their cosines, the nearest first. The word must be among the vectors."""
    lengths = np.linalg.norm(vectors.values, axis=1, keepdims=True)
    values = vectors.values / np.maximum(lengths, 1e-12)
    here = vectors.words.index(word)
    cosines = values @ values[here]
    order = np.argsort(-cosines, kind="stable")
    return [(vectors.words[n], float(cosines[n])) for n in order if n != here][:most]

"""The words nearest to a word, by cosine.

Knows: WordVectors. Blind to: models, text.
"""

from __future__ import annotations

import numpy as np

from bilmo.sense.uses import WordVectors, unit


def nearest(vectors: WordVectors, word: str, most: int) -> list[tuple[str, float]]:
    """Up to `most` other words and their cosines, nearest first. The word must be among the vectors."""
    values = unit(vectors.values)
    here = vectors.words.index(word)
    cosines = values @ values[here]
    order = np.argsort(-cosines, kind="stable")
    return [(vectors.words[n], float(cosines[n])) for n in order if n != here][:most]

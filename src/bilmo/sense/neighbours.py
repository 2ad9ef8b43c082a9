"""The words nearest to a word, by cosine.

Knows: WordVectors. Blind to: models, text.
"""

from __future__ import annotations

from bilmo.embed import word_space
from bilmo.sense.uses import WordVectors


def nearest(vectors: WordVectors, word: str, most: int) -> list[tuple[str, float]]:
    """Up to `most` other words and their cosines, nearest first. The word must be among the vectors."""
    values = word_space.unit(vectors.values)
    here = values[vectors.words.index(word)]
    return word_space.nearest(vectors.words, values, here, most, without=[word])

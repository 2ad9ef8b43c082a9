"""Cosines of words: of two sentences with each other, and of one sentence in every layer.

Knows: Embedder. Blind to: pictures.
"""

# L layers, R and C tokens

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bilmo.embed.embedder import Embedder
from bilmo.embed.word_space import unit
from bilmo.errors import ConfigError, TextError
from bilmo.ids.batch import Sentence
from bilmo.net.mix import How
from bilmo.sense.space import Space

Floats = NDArray[np.float32]
MOST_TOKENS = 60
"""Tokens of a sentence in a picture: more would be too small to read."""


def tokens_of(elmo: Embedder, text: str) -> list[str]:
    """The tokens of a text for a picture; several sentences are one list."""
    tokens = [token for sentence in elmo.sentences(text) for token in sentence]
    if not tokens:
        raise TextError("a sentence is empty; give a sentence in quotes")
    if len(tokens) > MOST_TOKENS:
        raise TextError(
            f"a sentence has {len(tokens):,} tokens; a picture shows at most {MOST_TOKENS}. Give a shorter one."
        )
    return tokens


def between(elmo: Embedder, a: Sentence, b: Sentence, mix: How, space: Space | None = None) -> Floats:
    """(R, C): the cosine of each token of one sentence with each token of another.

    space: whiten the vectors with the statistics of a text; without it, raw vectors are compared.
    """
    vectors = elmo.embed([a, b], mix=space.mix if space is not None else mix)
    one, other = (space.whitening.apply(values) if space is not None else unit(values) for values in vectors)
    return np.asarray(np.clip(one @ other.T, -1, 1))


def by_layer(elmo: Embedder, tokens: Sentence) -> list[Floats]:
    """For each layer (R, R): the cosines of the tokens of a sentence with each other, from layer 0 to the top."""
    if elmo.start == "carry":
        raise ConfigError("pictures need a model whose sentences are independent; load it without start=carry")
    return [np.clip(unit(values) @ unit(values).T, -1, 1) for values in elmo.layers([tokens])[0]]

"""Cosines of words for pictures."""

import numpy as np
import pytest

from bilmo.embed.embedder import Embedder
from bilmo.errors import TextError
from bilmo.sense import similarity
from bilmo.sense.space import Space

from task_data import made

ELMO = Embedder(made(0), lang="en")
A, B = ["He", "sat"], ["The", "bank", "closed"]


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_two_sentences_are_compared_word_by_word():
    one, other = ELMO.embed([A, B], mix="top")
    wanted = [[cosine(x, y) for y in other] for x in one]
    assert np.allclose(similarity.between(ELMO, A, B, "top"), wanted, atol=1e-5)
    space = Space.of_lines(ELMO, ["He sat on the bank.", "The bank was closed, he said."], "top")
    vectors = [space.whitening.apply(values) for values in (one, other)]
    assert np.allclose(similarity.between(ELMO, A, B, "mean", space), vectors[0] @ vectors[1].T, atol=1e-5)


def test_every_layer_of_one_sentence():
    found = similarity.by_layer(ELMO, B)
    layers = ELMO.layers([B])[0]
    assert len(found) == len(layers)
    for values, vectors in zip(found, layers, strict=True):
        assert np.allclose(values, [[cosine(x, y) for y in vectors] for x in vectors], atol=1e-5)


def test_empty_and_long_sentences_are_refused():
    assert similarity.tokens_of(ELMO, "He sat. She ran!") == ["He", "sat", ".", "She", "ran", "!"]
    with pytest.raises(TextError, match="is empty"):
        similarity.tokens_of(ELMO, " \n")
    with pytest.raises(TextError, match="has 61 tokens; a picture shows at most 60"):
        similarity.tokens_of(ELMO, "a " * 61)

"""Vectors of words, and their neighbours."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import bilmo
from bilmo.embed.embedder import Embedder
from bilmo.ids.vocab import Vocab
from bilmo.net.config import CellConfig, TableConfig, WordsConfig
from bilmo.sense.neighbours import nearest
from bilmo.sense.uses import LAYER_0_SHARE, WordVectors, in_text, of_vocabulary, whitened
from bilmo.store.bundle import Bundle

WORDS = ["<S>", "</S>", "<UNK>", "a", "b", "c", "d"]


@pytest.fixture
def elmo():
    torch.manual_seed(0)
    config = bilmo.BiLMConfig(
        words=WordsConfig(table=TableConfig(rows=7, width=6), project=False), cell=CellConfig(cells=8), width=6
    )
    return Embedder(Bundle(config, bilmo.BiLM(config).state_dict(), layout="test", vocab=Vocab(WORDS)))


def test_whitened_vectors_have_no_common_part_no_strong_direction_and_length_one():
    strong = np.array([9, 1, 1, 1, 1, 1, 1, 0.2], dtype=np.float32)
    values = whitened((5 + strong * np.random.default_rng(0).normal(0, 1, (4000, 8))).astype(np.float32))
    assert np.allclose(np.linalg.norm(values, axis=1), 1, atol=1e-5)
    assert np.abs(values.mean(axis=0)).max() < 0.02
    spreads = np.linalg.eigvalsh(np.cov(values.T))
    assert spreads.max() < 2 * spreads.min()


def test_few_vectors_are_hardly_more_than_centred():
    values = np.random.default_rng(0).normal(3, 1, (6, 64)).astype(np.float32)
    centred = values - values.mean(axis=0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    found = whitened(values)
    assert np.allclose(found @ found.T, centred @ centred.T, atol=0.1)
    assert whitened(np.ones((1, 4), dtype=np.float32)).tolist() == [[0, 0, 0, 0]]


def test_the_nearest_come_first_and_the_word_itself_never():
    values = np.array([[1, 0], [0.9, 0.1], [0, 1], [-1, 0]], dtype=np.float32)
    found = nearest(WordVectors(["w", "x", "y", "z"], values), "w", 2)
    assert [word for word, _ in found] == ["x", "y"]
    assert found[0][1] > found[1][1]


def test_a_common_part_does_not_change_the_neighbours():
    values = np.random.default_rng(0).normal(0, 1, (40, 3)).astype(np.float32)
    plain, shifted = (whitened(rows) for rows in (values, values + 100))
    assert np.allclose(plain @ plain.T, shifted @ shifted.T, atol=1e-3)


def test_the_context_free_vector_of_a_word_is_its_layer_0(elmo):
    found = elmo.word_vectors(["a", "c"])
    table = elmo.bundle.weights["words.table.weight"].numpy()
    assert np.allclose(found, table[[3, 5]], atol=1e-6)


def test_a_known_word_is_its_layer_0_and_its_softmax_row(elmo):
    rows = torch.randn(7, 6)
    weights = elmo.bundle.weights | {"softmax.weight": rows, "softmax.bias": torch.zeros(7)}
    predicting = Embedder(replace(elmo.bundle, weights=weights))
    found = of_vocabulary(predicting, 6, "d")
    assert found.words == ["a", "b", "c", "d"]
    centred = rows[3:] - rows[3:].mean(dim=0)
    halves = [
        LAYER_0_SHARE * whitened(elmo.word_vectors(found.words)),
        centred / centred.norm(dim=1, keepdim=True),
    ]
    assert np.allclose(found.values, np.concatenate(halves, axis=1), atol=1e-6)


def test_without_a_softmax_row_a_word_is_its_layer_0(elmo):
    found = of_vocabulary(elmo, 5, "a")
    assert found.words == ["a", "b"]
    assert np.allclose(found.values, whitened(elmo.word_vectors(["a", "b"])))
    weights = elmo.bundle.weights | {"softmax.weight": torch.randn(7, 6), "softmax.bias": torch.zeros(7)}
    other = of_vocabulary(Embedder(replace(elmo.bundle, weights=weights)), 5, "never seen")
    assert other.words == ["a", "b", "never seen"] and other.values.shape == (3, 6)


def test_a_word_in_a_text_is_the_mean_of_its_uses(elmo):
    text = [["a", "b"], ["b", "a", "a"], ["c"], []]
    found = in_text(elmo, text, least=2)
    assert found.words == ["a", "b"]
    layers = elmo.layers(text)
    uses = {
        "a": [layers[0][:, 0], layers[1][:, 1], layers[1][:, 2]],
        "b": [layers[0][:, 1], layers[1][:, 0]],
    }
    means = np.stack([np.mean([use.mean(axis=0) for use in uses[word]], axis=0) for word in found.words])
    assert np.allclose(found.values, whitened(means), atol=1e-5)
    assert in_text(elmo, text, least=9).words == []

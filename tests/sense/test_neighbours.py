from dataclasses import replace

import numpy as np
import pytest
import torch

import bilmo
from bilmo.embed.embedder import Embedder
from bilmo.ids.vocab import Vocab
from bilmo.net.config import CellConfig, TableConfig, WordsConfig
from bilmo.sense.neighbours import nearest
from bilmo.sense.uses import WordVectors, alone, centred, in_text, of_vocabulary
from bilmo.store.bundle import Bundle

WORDS = ["<S>", "</S>", "<UNK>", "a", "b", "c", "d"]


@pytest.fixture
def elmo():
    torch.manual_seed(0)
    config = bilmo.BiLMConfig(
        words=WordsConfig(table=TableConfig(rows=7, width=6), project=False), cell=CellConfig(cells=8), width=6
    )
    return Embedder(Bundle(config, bilmo.BiLM(config).state_dict(), layout="test", vocab=Vocab(WORDS)))


def test_centred_vectors_have_no_common_part_and_length_one():
    values = centred(np.random.default_rng(0).normal(5, 1, (50, 8)).astype(np.float32))
    assert np.allclose(np.linalg.norm(values, axis=1), 1, atol=1e-5)
    assert np.abs(values.mean(axis=0)).max() < 0.15


def test_the_nearest_come_first_and_the_word_itself_never():
    values = np.array([[1, 0], [0.9, 0.1], [0, 1], [-1, 0]], dtype=np.float32)
    found = nearest(WordVectors(["w", "x", "y", "z"], values), "w", 2)
    assert [word for word, _ in found] == ["x", "y"]
    assert found[0][1] > found[1][1]


def test_a_common_part_hides_nothing():
    values = np.array([[1, 0], [0.9, 0.1], [0, 1], [-1, 0]], dtype=np.float32)
    plain = nearest(WordVectors(["w", "x", "y", "z"], values), "w", 3)
    shifted = nearest(WordVectors(["w", "x", "y", "z"], values + 100), "w", 3)
    assert [word for word, _ in plain] == [word for word, _ in shifted]


def test_a_word_alone_is_its_layer_0(elmo):
    found = alone(elmo, ["a", "c"])
    table = elmo.bundle.weights["words.table.weight"].numpy()
    assert np.allclose(found.values, table[[3, 5]], atol=1e-6)


def test_a_known_word_is_how_it_is_read_and_how_it_is_predicted(elmo):
    rows = torch.randn(7, 6)
    weights = elmo.bundle.weights | {"softmax.weight": rows, "softmax.bias": torch.zeros(7)}
    predicting = Embedder(replace(elmo.bundle, weights=weights))
    found = of_vocabulary(predicting, 6, "d")
    assert found.words == ["a", "b", "c", "d"]
    halves = [centred(alone(elmo, found.words).values), centred(rows[3:].numpy())]
    assert np.allclose(found.values, np.concatenate(halves, axis=1), atol=1e-6)


def test_without_a_softmax_or_its_row_a_word_is_how_it_is_read(elmo):
    found = of_vocabulary(elmo, 5, "a")
    assert found.words == ["a", "b"]
    assert np.allclose(found.values, alone(elmo, ["a", "b"]).values)
    weights = elmo.bundle.weights | {"softmax.weight": torch.randn(7, 6), "softmax.bias": torch.zeros(7)}
    other = of_vocabulary(Embedder(replace(elmo.bundle, weights=weights)), 5, "never seen")
    assert other.words == ["a", "b", "never seen"] and other.values.shape == (3, 6)


def test_a_word_in_a_text_is_the_mean_of_its_uses(elmo):
    text = [["a", "b"], ["b", "a", "a"], ["c"], []]
    found = in_text(elmo, text, least=2)
    assert found.words == ["a", "b"]
    layers = elmo.layers(text)
    uses = [layers[0][:, 0], layers[1][:, 1], layers[1][:, 2]]
    assert np.allclose(found.values[0], np.mean([use.mean(axis=0) for use in uses], axis=0), atol=1e-5)

"""Vectors of words, and their neighbours."""

import numpy as np
import pytest
import torch

import bilmo
from bilmo.embed.embedder import Embedder
from bilmo.embed.word_space import whitened
from bilmo.ids.vocab import Vocab
from bilmo.net.config import CellConfig, TableConfig, WordsConfig
from bilmo.sense.neighbours import nearest
from bilmo.sense.uses import WordVectors, in_text
from bilmo.store.bundle import Bundle

WORDS = ["<S>", "</S>", "<UNK>", "a", "b", "c", "d"]


@pytest.fixture
def elmo():
    torch.manual_seed(0)
    config = bilmo.BiLMConfig(
        words=WordsConfig(table=TableConfig(rows=7, width=6), project=False), cell=CellConfig(cells=8), width=6
    )
    return Embedder(Bundle(config, bilmo.BiLM(config).state_dict(), layout="test", vocab=Vocab(WORDS)))


def test_the_nearest_come_first_and_the_word_itself_never():
    values = np.array([[1, 0], [0.9, 0.1], [0, 1], [-1, 0]], dtype=np.float32)
    found = nearest(WordVectors(["w", "x", "y", "z"], values), "w", 2)
    assert [word for word, _ in found] == ["x", "y"]
    assert found[0][1] > found[1][1]


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

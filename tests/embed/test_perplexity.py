import math

import numpy as np
import pytest
import torch

import bilmo
from bilmo.embed.embedder import Embedder
from bilmo.embed.perplexity import score
from bilmo.ids.vocab import Vocab
from bilmo.net.config import CellConfig, TableConfig, WordsConfig
from bilmo.net.softmax import Softmax
from bilmo.store.bundle import Bundle

from reference import layers_of, log_probs

WORDS = ["<S>", "</S>", "<UNK>", "a", "b", "c", "d"]
TEXT = [["a", "b"], ["c", "strange", "a"], [], ["d"]]


@pytest.fixture
def bundle():
    torch.manual_seed(0)
    config = bilmo.BiLMConfig(
        words=WordsConfig(table=TableConfig(rows=7, width=6), project=False), cell=CellConfig(cells=8), width=6
    )
    softmax = {f"softmax.{name}": value for name, value in Softmax(7, 6).state_dict().items()}
    return Bundle(config, bilmo.BiLM(config).state_dict() | softmax, layout="test", vocab=Vocab(WORDS))


def test_perplexity_is_that_of_a_numpy_computation(bundle):
    found = score(Embedder(bundle, start="zero"), TEXT)
    weights = {name: value.double().numpy() for name, value in bundle.weights.items()}
    ids = [[0, *(WORDS.index(w) if w in WORDS else 2 for w in sentence), 1] for sentence in TEXT]
    losses, count, known = np.zeros(2), 0, np.zeros(2)
    for row in ids:
        state = {d: [(np.zeros(6), np.zeros(8))] * 2 for d in ("forward", "backward")}
        layers, _ = layers_of(bundle.config, weights, [None] * len(row), row, state)
        top = layers[-1]
        softmax = weights["softmax.weight"], weights["softmax.bias"]
        forward, backward = log_probs(*softmax, top[:-1, :6], row[1:]), log_probs(*softmax, top[1:, 6:], row[:-1])
        losses -= [forward.sum(), backward.sum()]
        known -= [forward[np.array(row[1:]) != 2].sum(), backward[np.array(row[:-1]) != 2].sum()]
        count += len(row) - 1
    assert found.perplexity["forward"] == pytest.approx(math.exp(losses[0] / count), rel=1e-5)
    assert found.perplexity["backward"] == pytest.approx(math.exp(losses[1] / count), rel=1e-5)
    assert found.perplexity["mean"] == pytest.approx(math.exp(losses.sum() / count / 2), rel=1e-5)
    assert found.known["forward"] == pytest.approx(math.exp(known[0] / (count - 1)), rel=1e-5)
    assert found.known["backward"] == pytest.approx(math.exp(known[1] / (count - 1)), rel=1e-5)
    assert found.known["mean"] == pytest.approx(math.exp(known.sum() / (count - 1) / 2), rel=1e-5)
    assert (found.words, found.sentences, found.unknown) == (6, 4, 1)


def test_a_stream_is_scored_like_a_list_and_carrying_goes_sentence_by_sentence(bundle):
    elmo = Embedder(bundle)
    assert score(elmo, iter(TEXT)).losses == pytest.approx(score(elmo, TEXT).losses, rel=1e-5)
    carried = score(Embedder(bundle, start="carry"), TEXT)
    chain = Embedder(bundle, start="carry")
    total = sum(-chain.log_probs([sentence])[0].sum(axis=1) for sentence in TEXT)
    assert list(carried.losses.values()) == pytest.approx(total.tolist(), rel=1e-5)


@pytest.mark.parametrize(("unknown", "warned"), [(0, False), (3, False), (4, True), (10, True)])
def test_many_unknown_words_are_a_warning(bundle, unknown, warned):
    found = score(Embedder(bundle), [["a"] * (10 - unknown) + ["strange"] * unknown])
    assert bool(found.warning) == warned
    assert not warned or found.warning.startswith(f"{unknown * 10}% of the words are not in the vocabulary")


def test_no_words_at_all_are_no_warning(bundle):
    assert score(Embedder(bundle), [[]]).warning is None


def test_a_perplexity_that_does_not_fit_into_a_float_is_infinite(bundle):
    bundle.weights["softmax.bias"][3] = 5000.0
    assert set(score(Embedder(bundle), [["b", "c"]]).perplexity.values()) == {math.inf}

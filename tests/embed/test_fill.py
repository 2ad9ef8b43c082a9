"""What fits a place in a sentence, and how likely words and sentences are."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import bilmo
from bilmo.embed.embedder import Embedder
from bilmo.embed.fill import combined
from bilmo.embed.probability import scored
from bilmo.errors import ConfigError, NoSoftmax, TextError
from bilmo.ids.vocab import Vocab
from bilmo.net.config import CellConfig, TableConfig, WordsConfig
from bilmo.net.softmax import Softmax
from bilmo.store.bundle import Bundle

from reference import layers_of

WORDS = ["<S>", "</S>", "<UNK>", "a", "b", "c", "d"]


def made(directions=("forward", "backward"), softmax=True):
    torch.manual_seed(0)
    config = bilmo.BiLMConfig(
        words=WordsConfig(table=TableConfig(rows=7, width=6), project=False),
        cell=CellConfig(cells=8),
        width=6,
        directions=directions,
    )
    head = {f"softmax.{name}": value for name, value in Softmax(7, 6).state_dict().items()} if softmax else {}
    return Bundle(config, bilmo.BiLM(config).state_dict() | head, layout="test", vocab=Vocab(WORDS))


def expected(bundle, row):
    """(2, T, V): log-probabilities at each word by the NumPy network; a row has the ids of a sentence and its marks."""
    weights = {name: value.double().numpy() for name, value in bundle.weights.items()}
    state = {d: [(np.zeros(6), np.zeros(8))] * 2 for d in ("forward", "backward")}
    layers, _ = layers_of(bundle.config, weights, [None] * len(row), row, state)
    logits = [
        top @ weights["softmax.weight"].T + weights["softmax.bias"] for top in (layers[-1][:-2, :6], layers[-1][2:, 6:])
    ]
    return np.stack([one - np.log(np.exp(one).sum(axis=1, keepdims=True)) for one in logits])


def test_every_word_has_the_probability_of_a_numpy_computation():
    bundle = made()
    wanted = expected(bundle, [0, 3, 2, 5, 1])
    elmo = Embedder(bundle, start="zero")
    for position in range(3):
        found = elmo.log_probs_at(["a", "strange", "c"], position)
        assert np.allclose(found, wanted[:, position], atol=1e-5)
        assert np.allclose(np.exp(found).sum(axis=1), 1, atol=1e-5)


def test_the_word_in_brackets_is_not_seen():
    elmo = Embedder(made(), lang="spaces")
    one, other = elmo.fill("a [b] c", topn=9), elmo.fill("a [d] c", topn=9)
    assert one.candidates == other.candidates
    assert (one.sentence, one.position) == (["a", "b", "c"], 1)
    assert [word.word for word in one.candidates] != ["b"]
    assert one.actual.word == "b" and one.candidates[one.rank - 1] == one.actual


def test_candidates_are_all_words_but_the_marks_and_the_rest_is_unknown():
    found = Embedder(made(), lang="spaces").fill("a [strange]", topn=9)
    assert sorted(one.word for one in found.candidates) == ["a", "b", "c", "d"]
    assert [one.probability for one in found.candidates] == sorted(
        (o.probability for o in found.candidates), reverse=True
    )
    assert found.rank is None
    assert sum(one.probability for one in found.candidates) + found.actual.probability == pytest.approx(1)


def test_one_direction_has_its_own_probabilities():
    elmo = Embedder(made(("forward",)), lang="spaces")
    found = elmo.fill("a [b] c", topn=4)
    assert found.actual.backward is None
    logs = elmo.log_probs_at(["a", "b", "c"], 1)[0].astype(np.float64)
    assert found.actual.forward == pytest.approx(math.exp(logs[4]))
    assert found.actual.probability == pytest.approx(math.exp(logs[4]) / (1 - math.exp(logs[0]) - math.exp(logs[1])))


@given(st.lists(st.floats(-20, 20), min_size=14, max_size=14), st.sampled_from([0.0, 0.5, 1.0]))
def test_combined_probabilities_add_up_to_one(values, prior):
    logits = np.array(values).reshape(2, 7)
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    found = np.exp(combined(logs, Vocab(WORDS), prior))
    assert found.sum() == pytest.approx(1)
    assert found[0] == found[1] == 0
    ratio = np.exp(logs[:, 3].sum() - logs[:, 4].sum()) * ((2.7 + 3) / (2.7 + 4)) ** prior
    assert found[3] == pytest.approx(ratio * found[4], rel=1e-6)


@pytest.mark.parametrize("text", ["a b", "a [b", "a b]", "]a[", "[a] [b]", "[[a]]", "a [] b", "a [ ] b", "[a b] c", ""])
def test_one_word_must_be_marked(text):
    with pytest.raises(TextError, match="square brackets"):
        Embedder(made(), lang="spaces").fill(text)


def test_the_sentence_of_the_word_is_used():
    elmo = Embedder(made(), lang="en")
    assert elmo.fill("He left. She [saw] it. We go.").sentence == ["She", "saw", "it", "."]


def test_wrong_arguments_are_refused():
    with pytest.raises(ConfigError, match="topn is 0"):
        Embedder(made(), lang="spaces").fill("[a]", topn=0)
    with pytest.raises(NoSoftmax):
        Embedder(made(softmax=False), lang="spaces").fill("[a]")


def test_scores_are_those_of_log_probs_with_lines_and_sentences_numbered():
    elmo = Embedder(made(), lang="en")
    found = list(scored(elmo, ["A b. C d.", "", ["d", "strange"]]))
    assert [(one.line, one.sentence) for one in found] == [(1, 1), (1, 2), (3, 1)]
    assert found[2].unknown == [False, True]
    for one in found:
        (logs,) = elmo.log_probs([one.tokens])
        assert np.allclose(one.words["forward"], logs[0, :-1], atol=1e-5)
        assert np.allclose(one.words["backward"], logs[1, 1:], atol=1e-5)
        assert list(one.totals.values()) == pytest.approx(logs.sum(axis=1).tolist(), rel=1e-5)

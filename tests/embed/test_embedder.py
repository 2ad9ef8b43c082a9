"""The loaded model at work: starts, carried states, mixes, probabilities, and the model as a torch module."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import bilmo
from bilmo.embed.embedder import Embedder
from bilmo.errors import ConfigError, NoSoftmax, TextError
from bilmo.formats import open as layouts

import old_models
from old_models import SENTENCES, write_checkpoint, write_hdf5, write_manylangs

STARTS = ("settled", "zero", "carry")
A, B, C = ["The", "cat"], ["sat", "on", "mats"], ["x"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    write_hdf5(folder, seed=1)
    return folder


@pytest.fixture(scope="module")
def elmo(model: Path) -> Embedder:
    """The model at work, for tests that leave it as it is."""
    return bilmo.load(model)


@pytest.fixture(scope="module")
def scoring(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    """A model with a softmax."""
    folder = tmp_path_factory.mktemp("scoring")
    write_checkpoint(folder)
    return bilmo.load(folder)


@pytest.fixture(scope="module")
def old() -> old_models.Old:
    return old_models.bilmtf(seed=1)


def close(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and bool(np.abs(a - b).max(initial=0) < 1e-5)


# Sentences in, vectors out


@pytest.mark.parametrize("start", STARTS)
def test_a_vector_for_every_token_in_the_order_they_came(model, start):
    found = bilmo.load(model, start=start).layers(SENTENCES)
    assert [layers.shape for layers in found] == [(3, len(s), 8) for s in SENTENCES]
    assert all(layers.dtype == np.float32 for layers in found)


@pytest.mark.parametrize("start", STARTS)
def test_no_sentences_and_sentences_of_no_words(model, start):
    elmo = bilmo.load(model, start=start)
    assert elmo.layers([]) == elmo.embed([]) == []
    assert [layers.shape for layers in elmo.layers([[], []])] == [(3, 0, 8)] * 2
    assert [vectors.shape for vectors in elmo.embed([[], ["a"]], mix="concat")] == [(0, 16), (1, 16)]


@pytest.mark.parametrize("start", ["settled", "zero"])
def test_what_stands_beside_a_sentence_changes_nothing(model, start, monkeypatch):
    elmo = bilmo.load(model, start=start)
    together = elmo.layers(SENTENCES)
    alone = [elmo.layers([sentence])[0] for sentence in SENTENCES]
    monkeypatch.setattr(elmo, "batch_tokens", 6)
    grouped = elmo.layers(SENTENCES)
    backwards = elmo.layers(SENTENCES[::-1])[::-1]
    for expected, *others in zip(together, alone, grouped, backwards, strict=True):
        assert all(close(expected, other) for other in others)


def test_results_are_the_callers_own(elmo):
    first = elmo.layers([A, A])
    expected = first[1].copy()
    first[0][:] = 7
    assert np.array_equal(first[1], expected)
    assert close(elmo.layers([A, A])[1], expected)


@pytest.mark.parametrize(
    ("sentences", "says"),
    [
        ("The cat", r"found one string\. Split it first"),
        (["The cat"], "sentence 0 is a str: 'The cat'; it must be a list of words"),
        ([A, "cat"], "sentence 1 is a str: 'cat'; it must be"),
        ([A, None], "(sentence|text) 1 is a NoneType: None; it must be"),
        ([A, 3], "(sentence|text) 1 is an int: 3; it must be"),
        ([A, {"a": 1}], "(sentence|text) 1 is a dict: {'a': 1}; it must be"),
        ([b"bytes"], "(sentence|text) 0 is a bytes: b'bytes'; it must be"),
        ([["a", 3]], r"(sentence|text) 0 contains 3 \(int\); words must be strings"),
        ([["a", None]], "(sentence|text) 0 contains None"),
        ([[b"bytes"]], "(sentence|text) 0 contains b'bytes'"),
        ([[["a"]]], "(sentence|text) 0 contains"),
        (None, r"(sentences|texts) is None; accepted: a list, an array or a column of texts"),
        (7, r"(sentences|texts) is an int: 7; accepted: .* Put a single one into a list"),
        (b"The cat", r"(sentences|texts) is a bytes: b'The cat'; accepted: .* Decode it first"),
        ({"text": A}, r"(sentences|texts) is a dict: .*; accepted: .* list\(texts\.values\(\)\)"),
        ({"cat", "dog"}, r"(sentences|texts) is a set: .*; accepted: .* A set has no order"),
    ],
)
def test_what_is_no_list_of_words_is_refused(scoring, sentences, says):
    text = isinstance(sentences, str) or (isinstance(sentences, list) and any(isinstance(s, str) for s in sentences))
    for call in (scoring.layers, scoring.log_probs, *([] if text else [scoring.embed])):  # embed splits text itself
        with pytest.raises(TextError, match=says):
            call(sentences)


def test_tuples_are_sentences_too(elmo):
    assert close(elmo.layers((tuple(A),))[0], elmo.layers([A])[0])


# Starts


def test_an_unknown_start_is_refused(model):
    with pytest.raises(ConfigError, match="start is 'warm'; accepted: settled, zero, carry"):
        bilmo.load(model, start="warm")


@pytest.mark.parametrize("start", ["settled", "zero"])
def test_a_sentence_has_the_same_vectors_every_time(model, start):
    elmo = bilmo.load(model, start=start)
    first = elmo.layers([A])[0]
    elmo.layers([B, C])
    assert close(elmo.layers([A])[0], first)


def test_starts_differ_in_context_only(model):
    settled, zero = (bilmo.load(model, start=start).layers([B])[0] for start in ("settled", "zero"))
    assert close(settled[0], zero[0])
    assert not np.allclose(settled[1:], zero[1:], atol=1e-3)


def test_zero_is_the_first_call_of_carry(model):
    zero, carry = (bilmo.load(model, start=start).layers(SENTENCES) for start in ("zero", "carry"))
    assert all(close(a, b) for a, b in zip(zero, carry, strict=True))


def test_a_carried_row_goes_on_where_it_ended(model, old):
    elmo = bilmo.load(model, start="carry")
    states: list[old_models.State | None] = [None, None, None]
    for call in ([A, B, C], [B, C], [C, [], A], [A], [B, A, C]):
        for row, (sentence, found) in enumerate(zip(call, elmo.layers(call), strict=True)):
            expected, states[row] = old_models.bilmtf_layers(old, sentence, states[row])
            assert close(found, expected)  # rows beyond the call stay as they were


def test_rows_that_were_never_used_start_at_zero(model):
    elmo = bilmo.load(model, start="carry")
    elmo.layers([A])
    _, new = elmo.layers([B, C])
    assert close(new, bilmo.load(model, start="zero").layers([C])[0])


def test_reset_forgets_what_was_carried(model):
    elmo = bilmo.load(model, start="carry")
    first = elmo.layers([A, B])
    second = elmo.layers([A, B])
    assert not np.allclose(first[0][1:], second[0][1:], atol=1e-3)
    elmo.reset()
    assert all(close(a, b) for a, b in zip(first, elmo.layers([A, B]), strict=True))


def test_a_refused_call_leaves_what_was_carried_as_it_was(model):
    elmo, other = (bilmo.load(model, start="carry") for _ in range(2))
    elmo.layers([A])
    other.layers([A])
    with pytest.raises(TextError):
        elmo.layers([B, "no sentence"])
    assert close(elmo.layers([B])[0], other.layers([B])[0])


def test_a_call_of_no_sentences_leaves_what_was_carried_as_it_was(model):
    elmo, other = (bilmo.load(model, start="carry") for _ in range(2))
    elmo.layers([A])
    other.layers([A])
    assert elmo.layers([]) == []
    assert close(elmo.layers([B])[0], other.layers([B])[0])


# Mixes


def test_every_mix_is_made_of_the_layers(elmo):
    (layers,) = elmo.layers([B])
    expected = {
        "all": layers,
        "mean": layers.mean(axis=0),
        "top": layers[2],
        "concat": np.concatenate([layers[1], layers[2]], axis=-1),
        1: layers[1],
        (0, 2): (layers[0] + layers[2]) / 2,
    }
    for mix, vectors in expected.items():
        assert close(elmo.embed([B], mix=mix)[0], vectors)
    assert close(elmo.embed([B])[0], expected["mean"])


@pytest.mark.parametrize("mix", ["weighted", "best", 3, -1, (0, 3), ()])
def test_a_mix_that_cannot_be_is_refused(elmo, mix):
    with pytest.raises(ConfigError, match=r"weighted mix is learned|accepted: |layers are numbered"):
        elmo.embed([A], mix=mix)


# Probabilities


def test_probabilities_of_one_direction_have_one_row(tmp_path):
    for directions in ((0,), (0, 1)):
        write_checkpoint(tmp_path / str(len(directions)), directions=directions)
    one, both = (bilmo.load(tmp_path / name, start="zero") for name in ("1", "2"))
    assert [logs.shape for logs in one.log_probs([A, []])] == [(1, 3), (1, 1)]
    assert [logs.shape for logs in both.log_probs([A, []])] == [(2, 3), (2, 1)]
    assert one.log_probs([]) == []


@pytest.mark.parametrize("start", STARTS)
def test_probabilities_of_all_words_add_up_to_one(tmp_path, start):
    write_checkpoint(tmp_path, vocab=("<S>", "</S>", "<UNK>", "a", "b"), words=True)
    ends = 0.0
    for word in ("a", "b", "unknown"):
        ends += np.exp(bilmo.load(tmp_path, start=start).log_probs([[word]])[0][0, 0])
    assert ends < 1
    ends += np.exp(bilmo.load(tmp_path, start=start).log_probs([[]])[0][0, 0])
    ends += np.exp(bilmo.load(tmp_path, start=start).log_probs([["<S>"]])[0][0, 0])
    assert ends == pytest.approx(1, abs=1e-5)


def test_a_model_without_a_softmax_says_so(elmo):
    with pytest.raises(NoSoftmax, match=r"has no softmax.*only TensorFlow checkpoints have one"):
        elmo.log_probs([A])


# The module


def test_a_fresh_module_gives_the_mean_of_all_layers(elmo):
    vectors, mask = elmo.module()([A, B, []])
    assert vectors.shape == (3, 3, 8)
    assert mask.tolist() == [[True, True, False], [True] * 3, [False] * 3]
    assert vectors[~mask].abs().max() == 0
    for row, expected in enumerate(elmo.embed([A, B, []])):
        assert close(vectors[row, : len(expected)].detach().numpy(), expected)


@pytest.mark.parametrize("start", ["settled", "zero"])
def test_a_module_starts_as_its_embedder_does(model, start):
    elmo = bilmo.load(model, start=start)
    vectors, _ = elmo.module(mix="top")([A])
    assert close(vectors[0].detach().numpy(), elmo.embed([A], mix="top")[0])


def test_a_module_cannot_carry(model):
    with pytest.raises(ConfigError, match="a module cannot carry a state; load the model with start="):
        bilmo.load(model, start="carry").module()


@pytest.mark.parametrize(
    ("settings", "width"),
    [
        ({}, 8),
        ({"mix": "top"}, 8),
        ({"mix": "mean"}, 8),
        ({"mix": "concat"}, 16),
        ({"mix": 1}, 8),
        ({"mix": [0, 1]}, 8),
        ({"word": True}, 12),
        ({"mix": "concat", "word": True}, 20),
        ({"own": True}, 8),
    ],
    ids=str,
)
def test_the_width_of_a_module_is_what_it_says(elmo, settings, width):
    module = elmo.module(**settings)
    assert module.output_width == width
    assert module([A, C])[0].shape == (2, 2, width)


def test_the_word_itself_stands_in_front(elmo):
    vectors, _ = elmo.module(word=True)([A])
    assert close(vectors[0, :, :4].detach().numpy(), elmo.layers([A])[0][0, :, :4])
    assert close(vectors[0, :, 4:].detach().numpy(), elmo.embed([A])[0])


def test_a_module_of_one_direction(tmp_path):
    write_hdf5(tmp_path, directions=(1,))
    vectors, _ = bilmo.load(tmp_path).module(own=True, word=True)([A])
    assert vectors.shape == (1, 2, 8)


def test_two_mixes_have_weights_of_their_own(elmo):
    module = elmo.module(mixes=2)
    with torch.no_grad():
        module.mixes[0].weights[0, 2] = 50.0
        module.mixes[1].weights[0, 0] = 50.0
        module.mixes[1].scale.fill_(2.0)
    (top, word), mask = module([A])
    layers = elmo.layers([A])[0]
    assert mask.shape == (1, 2)
    assert close(top[0].detach().numpy(), layers[2])
    assert close(word[0].detach().numpy(), 2 * layers[0])


@pytest.mark.parametrize("mixes", [0, -1])
def test_a_module_without_a_mix_is_refused(elmo, mixes):
    with pytest.raises(ConfigError, match=f"mixes is {mixes}; it must be 1 or more"):
        elmo.module(mixes=mixes)


def test_a_frozen_module_trains_its_mix_alone(elmo):
    module = elmo.module()
    vectors, _ = module([A, B])
    (vectors**2).sum().backward()
    assert sorted(name for name, p in module.named_parameters() if p.grad is not None) == [
        "mixes.0.scale",
        "mixes.0.weights",
    ]
    assert module.mixes[0].weights.grad.abs().max() > 0
    assert not any(p.requires_grad for p in module.network.parameters())


def test_a_tuned_module_trains_every_part_of_the_network(elmo):
    module = elmo.module(tune=True)
    vectors, _ = module([A, B])
    (vectors**2).sum().backward()
    without = [name for name, p in module.named_parameters() if p.grad is None or p.grad.abs().max() == 0]
    assert without == []


def test_tuning_leaves_the_embedder_as_it_was(elmo):
    before = elmo.layers(SENTENCES)
    module = elmo.module(tune=True)
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    module([A, B])[0].sum().backward()
    optimizer.step()
    assert not close(module([A])[0][0].detach().numpy(), elmo.embed([A])[0])
    assert all(close(a, b) for a, b in zip(before, elmo.layers(SENTENCES), strict=True))
    assert all(close(a, b) for a, b in zip(before, Embedder(elmo.bundle).layers(SENTENCES), strict=True))


def test_given_word_vectors_stay_as_they_came(tmp_path):
    """A table that is not to be tuned has no gradient even in a tuned module."""
    write_manylangs(tmp_path, chars=False)
    bundle = layouts.read(tmp_path)
    words = bundle.config.words
    assert words.table is not None
    config = replace(bundle.config, words=replace(words, table=replace(words.table, given=True, tuned=False)))
    order = [1, 2, 0, *range(3, len(bundle.vocab))]  # the marks in front
    weights = dict(bundle.weights)
    weights["words.table.weight"] = weights["words.table.weight"][order].contiguous()
    weights["words.table.marks"] = weights["words.table.weight"][:3].clone()
    vocab = type(bundle.vocab)(bundle.vocab.words[k] for k in order)
    elmo = Embedder(replace(bundle, config=config, weights=weights, vocab=vocab, start=None))
    assert close(elmo.layers([A])[0], bilmo.load(tmp_path).layers([A])[0])
    module = elmo.module(tune=True)
    module([A])[0].sum().backward()
    assert module.network.words.table.weight.grad is None
    assert module.network.words.table.marks.grad is not None


def normed(old: old_models.Old, sentences: list[list[str]], *, boundaries: bool) -> list[np.ndarray]:
    """The mean of layers that were brought to mean 0 and variance 1 over the whole batch."""
    whole = [old_models.bilmtf_layers(old, sentence, boundaries=True)[0] for sentence in sentences]
    counted = whole if boundaries else [layers[:, 1:-1] for layers in whole]
    numbers = np.concatenate(counted, axis=1).reshape(len(whole[0]), -1)
    mean, deviation = numbers.mean(axis=1)[:, None, None], numbers.std(axis=1)[:, None, None]
    return [((layers[:, 1:-1] - mean) / deviation).mean(axis=0) for layers in whole]


@pytest.mark.parametrize("norm", ["allennlp", "bilm-tf"])
def test_the_norms_of_the_old_systems_differ_by_counting_boundaries(model, old, norm):
    sentences = [A, B, [], C]
    vectors, mask = bilmo.load(model, start="zero").module(norm=norm)(sentences)
    expected = normed(old, sentences, boundaries=norm == "allennlp")
    for row, values in enumerate(expected):
        assert close(vectors[row, : len(values)].detach().numpy(), values)
    assert vectors[~mask].abs().max() == 0
    other = normed(old, sentences, boundaries=norm != "allennlp")
    assert not close(other[0], expected[0])


def test_dropout_acts_while_training_only(elmo):
    module = elmo.module(dropout=0.5)
    torch.manual_seed(0)
    assert (module([B])[0] == 0).any()
    module.eval()
    assert close(module([B])[0][0].detach().numpy(), elmo.embed([B])[0])


def test_a_module_can_be_saved_and_loaded_as_any_other(elmo):
    one, two = elmo.module(mixes=2, tune=True), elmo.module(mixes=2, tune=True)
    with torch.no_grad():
        for parameter in one.parameters():
            parameter.add_(0.125)
    two.load_state_dict(one.state_dict())
    assert torch.equal(one([A])[0][1], two([A])[0][1])


def test_a_batch_without_sentences_is_refused(elmo):
    with pytest.raises(TextError, match="pass at least one list of words"):
        elmo.module()([])


def test_a_batch_of_empty_sentences_has_no_tokens(elmo):
    vectors, mask = elmo.module()([[], []])
    assert vectors.shape == (2, 0, 8)
    assert mask.shape == (2, 0)


def test_sentences_may_come_from_a_generator_and_a_module_refuses_what_an_embedder_refuses(model):
    elmo = bilmo.load(model)
    for found, expected in zip(elmo.layers(iter([A, []])), elmo.layers([A, []]), strict=True):
        assert close(found, expected)
    for wrong in (["The cat"], "The cat", [["a", 3]]):
        with pytest.raises(TextError):
            elmo.module()(wrong)

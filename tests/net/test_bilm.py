from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.overrides import TorchFunctionMode

import bilmo.net.words
from bilmo.ids.batch import Indexer, Words
from bilmo.ids.chars import ByteChars
from bilmo.net.bilm import SETTLING, BiLM, settle
from bilmo.net.config import BiLMConfig, CellConfig, CharsConfig, TableConfig, WordsConfig
from bilmo.net.state import State

from reference import layers_of, look_up, spell
from strategies import (
    CELLS,
    ENCODERS,
    ENTRIES,
    VOCABULARY,
    configs,
    indexer_of,
    random_bilm,
    seeds,
    sentences,
    texts,
)

# B rows, T steps, D one direction, L layers

few, some, many = (settings(max_examples=n) for n in (6, 15, 30))

SMALL = BiLMConfig(  # the smallest of the published shapes
    words=WordsConfig(chars=CharsConfig(highways=1)), cell=CellConfig(cells=1024), width=128, layers=2
)
TEXT = [
    ["The", "cat", "sat", "on", "the", "mat", "."],
    ["Hello"],
    [],
    ["汉字", "🙂", "antidisestablishmentarianism" * 2, "", "<UNK>", "the", "cat", "sat", "again"],
]


def arrays(bilm):
    return {name: tensor.double().numpy() for name, tensor in bilm.state_dict().items()}


def random_state(bilm, rows, seed):
    random = np.random.default_rng(seed)
    zeros = bilm.zero_state(rows).named()
    return State.from_named(
        {name: torch.as_tensor(random.normal(size=s.shape), dtype=s.dtype) for name, s in zeros.items()}
    )


def padded(bilm, batch, state):
    layers, after = bilm(batch, state)
    return layers.padded(), after


def row_of(state, row):
    return {
        direction: [tuple(s[row].detach().double().numpy() for s in layer) for layer in stack]
        for direction, stack in state.stacks.items()
    }


def by_hand(config, weights, sentence, state, *, more_padding=0):
    words = ["<S>", *sentence, "</S>"]
    chars, rows = [None] * len(words), [None] * len(words)
    if config.words.chars:
        chars = [spell(config.words.chars, word, ENTRIES) for word in words]
        if config.words.chars.max_characters is None:
            pad = 260 if config.words.chars.kind == "bytes" else ENTRIES.index("<pad>")
            chars = [ids + [pad] * more_padding for ids in chars]
    if config.words.table:
        rows = [look_up(config.words, VOCABULARY, word) for word in words]
    return layers_of(config, weights, chars, rows, state)


def assert_same_state(found, expected, close):
    assert found.keys() == expected.keys()
    for direction, stack in expected.items():
        assert len(found[direction]) == len(stack)
        for layer, right in zip(found[direction], stack, strict=True):
            for a, b in zip(layer, right, strict=True):
                np.testing.assert_allclose(a, b, atol=close, rtol=close)


def assert_equals_the_reference(bilm, text, state, *, close, more_padding=0):
    config, weights = bilm.config, arrays(bilm)
    with torch.no_grad():
        layers, after = padded(bilm, indexer_of(config).batch(text), state)
    steps = max(map(len, text)) + 2
    assert layers.values.shape == (config.layers + 1, len(text), steps, config.vector_width)
    for row, sentence in enumerate(text):
        length = len(sentence) + 2
        expected, last = by_hand(config, weights, sentence, row_of(state, row), more_padding=more_padding)
        np.testing.assert_allclose(layers.values[:, row, :length].double().numpy(), expected, atol=close, rtol=close)
        assert not layers.values[:, row, length:].any()
        assert layers.mask[row].tolist() == [True] * length + [False] * (steps - length)
        assert_same_state(row_of(after, row), last, close)
    return after


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_the_network_equals_the_reference(encoder, cell):
    @some
    @given(configs(encoder=encoder, cell=cell), texts(), seeds(), st.integers(0, 3))
    def check(config, text, seed, more_padding):
        bilm = random_bilm(config, seed)
        state = random_state(bilm, len(text), seed + 1)
        assert_equals_the_reference(bilm, text, state, close=1e-5, more_padding=more_padding)

    check()


@pytest.mark.parametrize("cell", CELLS)
def test_in_double_precision_no_difference_from_the_reference_is_left(cell):
    @some
    @given(configs(cell=cell), texts(), seeds())
    def check(config, text, seed):
        bilm = random_bilm(config, seed, torch.float64)
        state = random_state(bilm, len(text), seed + 1)
        assert_equals_the_reference(bilm, text, state, close=1e-11)

    check()


@many
@given(configs(), st.integers(1, 3), st.data(), seeds())
def test_a_state_carried_over_two_calls_equals_the_reference(config, rows, data, seed):
    bilm = random_bilm(config, seed)
    state = bilm.zero_state(rows)
    for _ in range(2):
        text = data.draw(texts(rows, rows))
        state = assert_equals_the_reference(bilm, text, state, close=1e-5)


@many
@given(configs(), sentences(), texts(), st.data(), seeds())
def test_a_sentence_has_the_same_vectors_alone_in_any_batch_and_in_any_order(config, sentence, text, data, seed):
    bilm, indexer = random_bilm(config, seed), indexer_of(config)
    place = data.draw(st.integers(0, len(text)))
    text = [*text[:place], sentence, *text[place:]]
    order = data.draw(st.permutations(range(len(text))))
    with torch.no_grad():
        alone, after_alone = padded(bilm, indexer.batch([sentence]), bilm.zero_state(1))
        batch, after_batch = padded(bilm, indexer.batch(text), bilm.zero_state(len(text)))
        shuffled, _ = padded(bilm, indexer.batch([text[k] for k in order]), bilm.zero_state(len(text)))
    length = len(sentence) + 2
    torch.testing.assert_close(batch.values[:, place, :length], alone.values[:, 0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(shuffled.values, batch.values[:, order], atol=1e-5, rtol=1e-5)
    assert_same_state(row_of(after_batch, place), row_of(after_alone, 0), 1e-5)


@some
@given(configs(), texts(2, 4), seeds())
def test_what_stands_in_the_padding_of_a_batch_does_not_matter(config, text, seed):
    bilm, batch = random_bilm(config, seed), indexer_of(config).batch(text)
    padding = np.arange(batch.forward.shape[1]) >= batch.lengths[:, None]
    random = np.random.default_rng(seed)
    number = int(max(batch.forward.max(), batch.backward.max())) + 1
    other = replace(
        batch,
        forward=np.where(padding, random.integers(number, size=padding.shape), batch.forward),
        backward=np.where(padding, random.integers(number, size=padding.shape), batch.backward),
    )
    with torch.no_grad():
        layers, _ = padded(bilm, batch, bilm.zero_state(len(text)))
        layers_of_other, _ = padded(bilm, other, bilm.zero_state(len(text)))
    assert torch.equal(layers.values, layers_of_other.values)


@many
@given(configs(), texts(), seeds())
def test_inside_is_each_row_without_its_own_boundaries(config, text, seed):
    bilm = random_bilm(config, seed)
    with torch.no_grad():
        layers, _ = padded(bilm, indexer_of(config).batch(text), bilm.zero_state(len(text)))
    inside = layers.inside()
    assert inside.values.shape[2] == max(map(len, text))
    for row, sentence in enumerate(text):
        n = len(sentence)
        assert torch.equal(inside.values[:, row, :n], layers.values[:, row, 1 : n + 1])
        assert not inside.values[:, row, n:].any()
        assert inside.mask[row].sum() == n and inside.mask[row, :n].all()


@some
@given(configs(), texts(), seeds())
def test_layer_0_is_the_word_once_for_each_direction_and_knows_no_context(config, text, seed):
    bilm, batch = random_bilm(config, seed), indexer_of(config).batch(text)
    with torch.no_grad():
        words = bilm.words(batch.words)
        layers, _ = padded(bilm, batch, random_state(bilm, len(text), seed))
    expected = torch.cat([words[batch.forward]] * len(config.directions), dim=-1) * layers.mask.unsqueeze(-1)
    assert torch.equal(layers.values[0], expected)


@pytest.mark.parametrize("at_once", [1, 7, 50])
def test_a_convolution_in_pieces_changes_nothing(at_once):
    @some
    @given(configs(encoder="bytes"), texts(), seeds())
    def check(config, text, seed):
        bilm, words = random_bilm(config, seed), indexer_of(config).batch(text).words
        with torch.no_grad():
            whole = bilm.words(words)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(bilmo.net.words, "AT_ONCE", at_once)
                pieces = bilm.words(words)
        torch.testing.assert_close(pieces, whole, atol=1e-6, rtol=1e-6)

    check()


class Convolutions(TorchFunctionMode):
    """Takes down how many numbers each convolution gives at a time."""

    def __init__(self):
        super().__init__()
        self.held = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function in (torch.conv1d, torch.nn.functional.linear):
            self.held.append(result.numel())
        return result


@pytest.mark.parametrize("at_once", [1, 100, 1 << 22])
def test_a_convolution_never_holds_more_than_it_may(at_once, monkeypatch):
    monkeypatch.setattr(bilmo.net.words, "AT_ONCE", at_once)
    config = BiLMConfig(
        words=WordsConfig(chars=CharsConfig(filters=((2, 3),), highways=0, max_characters=None), project=False),
        cell=CellConfig(kind="rnn", cells=3, project=False, cell_clip=None, projection_clip=None),
        width=3,
    )
    bilm, words = random_bilm(config, 0), indexer_of(config).batch([["a" * 90, "b"]]).words
    with torch.no_grad(), Convolutions() as seen:
        bilm.words(words)
    one_place = 3 * len(words.chars)  # of every word, by every filter
    assert max(seen.held) <= max(at_once, one_place)
    assert sum(seen.held) == one_place * (words.chars.shape[1] - 1)


@pytest.mark.parametrize("kind, gates", [("rnn", 1), ("gru", 3), ("lstm", 4)])
@pytest.mark.parametrize("m", [1, 5, 32])
def test_a_cell_without_projection_has_the_parameters_of_the_textbook(kind, gates, m):
    config = BiLMConfig(
        words=WordsConfig(table=TableConfig(rows=4, width=m), project=False),
        cell=CellConfig(kind=kind, cells=m, project=False, cell_clip=None, projection_clip=None),
        width=m,
        layers=3,
    )
    bilm = BiLM(config)
    for direction in ("forward", "backward"):
        assert len(bilm.stacks[direction]) == 3
        for cell in bilm.stacks[direction]:
            assert sum(p.numel() for p in cell.parameters()) == gates * (m * m + m * m + m)


@pytest.mark.parametrize(
    "cells, width, highways, millions", [(1024, 128, 1, 13.6), (2048, 256, 1, 28.0), (4096, 512, 2, 93.6)]
)
def test_the_published_shapes_have_the_published_number_of_parameters(cells, width, highways, millions):
    config = BiLMConfig(
        words=WordsConfig(chars=CharsConfig(highways=highways)), cell=CellConfig(cells=cells), width=width
    )
    with torch.device("meta"):
        bilm = BiLM(config)
    assert round(sum(p.numel() for p in bilm.parameters()) / 1e6, 1) == millions


@pytest.fixture(scope="module")
def small():
    torch.manual_seed(0)
    return BiLM(SMALL), Indexer(chars=ByteChars(50), vocab=None, widest_filter=7)


@pytest.fixture(scope="module")
def small_layers(small):
    bilm, indexer = small
    with torch.no_grad():
        return padded(bilm, indexer.batch(TEXT), bilm.zero_state(len(TEXT)))[0].values


def test_the_published_small_shape_gives_a_sentence_the_same_vectors_alone_and_in_a_batch(small, small_layers):
    bilm, indexer = small
    for row, sentence in enumerate(TEXT):
        with torch.no_grad():
            alone, _ = padded(bilm, indexer.batch([sentence]), bilm.zero_state(1))
        for one, all_rows in zip(alone.values, small_layers, strict=True):
            difference = (all_rows[row, : len(sentence) + 2] - one[0]).abs().max()
            assert difference <= 1e-5 * one.abs().max()


def test_the_published_small_shape_equals_the_reference(small, small_layers):
    bilm, _ = small
    weights = arrays(bilm)
    for row in (1, 3):
        expected, _ = by_hand(SMALL, weights, TEXT[row], row_of(bilm.zero_state(1), 0))
        for layer, right in zip(small_layers, expected, strict=True):
            difference = np.abs(layer[row, : len(TEXT[row]) + 2].numpy() - right).max()
            assert difference <= 1e-5 * np.abs(right).max()


@some
@given(configs(), texts(), seeds())
def test_every_parameter_learns_but_given_vectors_that_are_not_tuned(config, text, seed):
    bilm = random_bilm(config, seed)
    layers, after = padded(bilm, indexer_of(config).batch(text), bilm.zero_state(len(text)))
    total = layers.values.sum() + sum(s.sum() for s in after.named().values())
    total.backward()
    table = config.words.table
    frozen = {"words.table.weight"} if table and table.given and not table.tuned else set()
    assert {name for name, p in bilm.named_parameters() if p.grad is None} == frozen


def test_given_vectors_leave_the_three_marks_to_learned_rows():
    config = BiLMConfig(
        words=WordsConfig(table=TableConfig(rows=5, width=2, given=True), project=False),
        cell=CellConfig(kind="rnn", cells=2, project=False, cell_clip=None, projection_clip=None),
        width=2,
    )
    bilm = random_bilm(config, 3)
    words = bilm.words(Words(chars=None, ids=np.array([0, 4, 2, 3, 1])))
    marks, table = bilm.words.table.marks, bilm.words.table.weight
    assert torch.equal(words, torch.stack([marks[0], table[4], marks[2], table[3], marks[1]]))


@few
@given(configs(), seeds())
def test_a_settled_state_is_the_one_after_many_empty_sentences(config, seed):
    bilm = random_bilm(config, seed, torch.float64)
    weights, state = arrays(bilm), row_of(bilm.zero_state(1), 0)
    for _ in range(SETTLING):
        _, state = by_hand(config, weights, [], state)
    assert_same_state(row_of(settle(bilm, indexer_of(config).batch([[]])), 0), state, 1e-6)


def test_fresh_weights_are_drawn_as_the_old_systems_drew_them():
    torch.manual_seed(1)
    for activation in ("relu", "tanh"):
        bilm = BiLM(replace(SMALL, words=WordsConfig(chars=CharsConfig(activation=activation))))
        chars = bilm.words.chars
        assert 0.95 < chars.table.abs().max() <= 1
        for conv, (w, _) in zip(chars.filters, chars.config.filters, strict=True):
            assert not conv.bias.any()
            if activation == "relu":
                assert 0.045 < conv.weight.abs().max() <= 0.05
            else:
                assert conv.weight.std().item() == pytest.approx((w * 16) ** -0.5, rel=0.1)
        for highway in chars.highways:
            assert (highway.carry.bias == 2).all() and not highway.transform.bias.any()
            assert highway.carry.weight.std().item() == pytest.approx(2048**-0.5, rel=0.1)
        cell = bilm.backward_stack[1]
        bound = (6 / (128 + 128 + 4 * 1024)) ** 0.5  # Glorot over [input ; recurrent] as one matrix
        for part in (cell.input, cell.recur):
            assert 0.99 * bound < part.abs().max() <= bound
        assert not cell.bias.any()


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_every_weight_is_initialised_again_by_the_module_that_owns_it(activation):
    chars = CharsConfig(width=4, filters=((1, 8), (2, 8)), highways=1, activation=activation)
    words = WordsConfig(chars=chars, table=TableConfig(rows=9, width=5, given=True), highways=1)
    bilm = BiLM(BiLMConfig(words=words, cell=CellConfig(cells=24), width=8))
    with torch.no_grad():
        for parameter in bilm.parameters():
            parameter.fill_(7.0)
    bilm.reset_parameters()
    for name, parameter in bilm.named_parameters():
        if name.endswith("carry.bias"):
            assert (parameter == 2).all()
        elif name.endswith("bias"):
            assert not parameter.any()
        else:
            assert 0 < parameter.std() < 1 and not (parameter == 7).any()

"""The driver: layers written into one tensor, kept packed, in chunks, in threads, with gradients, with dropout."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bilmo.net.run
from bilmo.ids.batch import Batch, Words
from bilmo.net.bilm import BiLM
from bilmo.net.config import BiLMConfig, CellConfig, TableConfig, WordsConfig
from bilmo.net.run import run

from strategies import configs, indexer_of, random_bilm, seeds, texts

TWO_LAYERS = BiLMConfig(
    words=WordsConfig(table=TableConfig(rows=5, width=6)), cell=CellConfig(cells=12), width=6, layers=2
)
PLACES = np.array([[0, 1, 2], [3, 4, 0]])
BATCH = Batch(PLACES, PLACES[:, ::-1], np.array([3, 3]), Words(chars=None, ids=np.arange(5)))


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of two steps at least."""
    monkeypatch.setattr(bilmo.net.run, "LEAST", 2)
    monkeypatch.setattr(bilmo.net.run, "CHUNK", 1)


@settings(max_examples=40)
@given(configs(), texts(), seeds(), st.data())
def test_layers_written_sentence_after_sentence_are_the_padded_ones_without_padding(config, text, seed, data):
    bilm, batch = random_bilm(config, seed), indexer_of(config).batch(text)
    state = bilm.zero_state(len(text))
    number = data.draw(st.integers(1, config.layers + 1))
    least = bilmo.net.run.LEAST, bilmo.net.run.CHUNK
    with torch.no_grad():
        layers, after = bilm(batch, state)
        out = torch.empty(number, int(batch.lengths.sum()), config.vector_width)
        bilmo.net.run.LEAST, bilmo.net.run.CHUNK = data.draw(st.integers(1, 4)), 1
        try:
            _, last = run(bilm.stacks, bilm.words(batch.words), batch, state, skip=config.skip, out=out)
            in_chunks, last_of_all = bilm(batch, state)
        finally:
            bilmo.net.run.LEAST, bilmo.net.run.CHUNK = least
    padded = layers.padded()
    torch.testing.assert_close(out, padded.values[:number][:, padded.mask], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(in_chunks.padded().values, padded.values, atol=1e-5, rtol=1e-5)
    for name, part in after.named().items():
        computed = int(name.split(".")[1]) < number - 1
        expected = part if computed else state.named()[name]
        torch.testing.assert_close(last.named()[name], expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(last_of_all.named()[name], part, atol=1e-5, rtol=1e-5)


@settings(max_examples=20)
@given(configs(), texts(), seeds(), st.booleans())
def test_separate_graphs_have_the_gradients_of_one(config, text, seed, only_top):
    bilm, batch = random_bilm(config, seed), indexer_of(config).batch(text)
    found = []
    for separate in (False, True):
        bilm.zero_grad()
        layers, _ = bilm(batch, bilm.zero_state(len(text)), only_top=only_top, separate_graphs=separate)
        values = layers.padded().values
        (values * torch.linspace(0, 1, values.numel()).view_as(values)).sum().backward()
        found.append((values.detach(), {name: p.grad for name, p in bilm.named_parameters()}))
    torch.testing.assert_close(found[0], found[1])


@settings(max_examples=20)
@given(configs(), texts(), seeds(), st.booleans())
def test_the_top_layer_alone_is_the_last_of_all_layers(config, text, seed, training):
    bilm, batch = random_bilm(config, seed), indexer_of(config).batch(text)
    with torch.set_grad_enabled(training):
        layers, after = bilm(batch, bilm.zero_state(len(text)))
        top, after_top = bilm(batch, bilm.zero_state(len(text)), only_top=True)
    assert torch.equal(top.padded().values[0], layers.padded().values[-1])
    assert all(torch.equal(a, b) for a, b in zip(top.tops, layers.tops, strict=True))
    assert all(torch.equal(after.named()[name], part) for name, part in after_top.named().items())


def test_rows_that_ended_in_an_earlier_chunk_keep_their_state(small_chunks):
    torch.manual_seed(0)
    bilm = BiLM(TWO_LAYERS)
    places = np.array([[0, 1, 2, 3, 4], [3, 4, 0, 0, 0], [1, 0, 0, 0, 0]])
    batch = Batch(places, places, np.array([5, 2, 1]), Words(chars=None, ids=np.arange(5)))
    with torch.no_grad():
        _, after = bilm(batch, bilm.zero_state(3))
        for row, length in enumerate(batch.lengths):
            alone = Batch(places[[row], :length], places[[row], :length], batch.lengths[[row]], batch.words)
            _, expected = bilm(alone, bilm.zero_state(1))
            for name, part in expected.named().items():
                torch.testing.assert_close(after.named()[name][[row]], part)


def test_dropout_acts_on_the_input_of_each_layer_and_the_skip_connection_sees_the_rest(monkeypatch):
    torch.manual_seed(0)
    bilm = BiLM(TWO_LAYERS).train()
    state = bilm.zero_state(2)
    plain, _ = bilm(BATCH, state)
    bilm.eval()
    assert torch.equal(bilm(BATCH, state, dropout=0.5)[0].padded().values, plain.padded().values)

    masks = {"forward": [], "backward": []}

    def drop(x, share, random):
        assert share == 0.5
        direction = "forward" if len(masks["forward"]) < 2 else "backward"
        masks[direction].append((torch.rand(6) < 0.5).float())
        return x * masks[direction][-1]

    monkeypatch.setattr(bilmo.net.run, "_dropped", drop)
    dropped, _ = bilm.train()(BATCH, state, dropout=0.5)
    for direction, (first_cell, second_cell) in bilm.stacks.items():
        steps = next(iter(dropped.packing.chunks(3)))[1]
        x = dropped.outputs[direction][0]
        first, _ = first_cell(x * masks[direction][0], steps, state.stacks[direction][0])
        second, _ = second_cell(first * masks[direction][1], steps, state.stacks[direction][1])
        torch.testing.assert_close(dropped.outputs[direction][1], first)
        torch.testing.assert_close(dropped.outputs[direction][2], second + first * masks[direction][1])


@pytest.mark.parametrize("separate", [False, True])
def test_dropout_follows_from_the_seed_and_differs_between_directions(separate):
    torch.manual_seed(0)
    bilm = BiLM(TWO_LAYERS).train()
    found = []
    for _ in range(2):
        torch.manual_seed(1)
        found.append(bilm(BATCH, bilm.zero_state(2), dropout=0.5, only_top=True, separate_graphs=separate)[0].outputs)
    assert all(torch.equal(a, b) for a, b in zip(found[0].values(), found[1].values(), strict=True))
    zeros = [values == 0 for values in found[0].values()]
    assert zeros[0].any() and not torch.equal(zeros[0], zeros[1])


def test_dropout_keeps_the_expected_value():
    x = torch.ones(20_000)
    dropped = bilmo.net.run._dropped(x, 0.3, torch.Generator().manual_seed(5))
    assert dropped.unique().tolist() == pytest.approx([0, 1 / 0.7])
    assert dropped.mean().item() == pytest.approx(1, abs=0.02)


def test_layers_are_not_written_while_gradients_are_recorded():
    bilm = BiLM(TWO_LAYERS)
    out = torch.empty(3, 6, 12)
    with pytest.raises(ValueError, match="no_grad"):
        run(bilm.stacks, bilm.words(BATCH.words), BATCH, bilm.zero_state(2), out=out)


def test_a_prepared_network_writes_the_layers_of_the_network():
    bilm = BiLM(TWO_LAYERS)
    prepared, state, out = bilm.prepared(), bilm.zero_state(2), torch.empty(3, 6, 12)
    with torch.no_grad():
        layers, after = bilm(BATCH, state)
        found = prepared.layers(prepared.words(BATCH.words), BATCH, state, out)
    torch.testing.assert_close(out, layers.padded().values.flatten(1, 2), atol=1e-5, rtol=1e-5)
    for name, part in after.named().items():
        torch.testing.assert_close(found.named()[name], part, atol=1e-5, rtol=1e-5)

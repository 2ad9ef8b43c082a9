import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bilmo.net.softmax
from bilmo.net.softmax import Softmax

from reference import log_probs as log_probs_by_hand
from strategies import seeds

# N positions, V words, D one direction


def draw(seed, *, positions=7, words=11, width=4):
    """A softmax whose biases are not 0, outputs for it and words to ask for."""
    random = np.random.default_rng(seed)
    softmax = Softmax(words, width).double()
    with torch.no_grad():
        for parameter in softmax.parameters():
            parameter.copy_(torch.from_numpy(random.normal(size=parameter.shape)))
    outputs = torch.from_numpy(random.normal(size=(positions, width)))
    return softmax, outputs, torch.from_numpy(random.integers(words, size=positions))


@settings(max_examples=40)
@given(seeds(), st.integers(1, 9), st.integers(1, 12), st.integers(1, 5))
def test_log_probabilities_equal_the_reference(seed, positions, words, width):
    softmax, outputs, targets = draw(seed, positions=positions, words=words, width=width)
    weight, bias = softmax.weight.detach().numpy(), softmax.bias.detach().numpy()
    expected = log_probs_by_hand(weight, bias, outputs.numpy(), targets.tolist())
    found = softmax.log_probs(outputs, targets).detach().numpy()
    np.testing.assert_allclose(found, expected, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("at_once", [1, 2, 6, 7, 10, 11, 1000])
def test_positions_and_words_in_pieces_change_nothing(at_once, monkeypatch):
    softmax, outputs, targets = draw(0)
    whole = softmax.log_probs(outputs, targets)
    monkeypatch.setattr(bilmo.net.softmax, "BLOCK_ROWS", at_once)
    torch.testing.assert_close(softmax.log_probs(outputs, targets), whole, atol=1e-12, rtol=1e-12)


def test_the_logits_held_are_bounded(monkeypatch):
    softmax, outputs, targets = draw(0)
    addmm, held = torch.addmm, []

    def watched(*given_):
        held.append(addmm(*given_))
        return held[-1]

    monkeypatch.setattr(bilmo.net.softmax, "BLOCK_ROWS", 4)
    monkeypatch.setattr(torch, "addmm", watched)
    softmax.log_probs(outputs, targets)
    assert [tuple(logits.shape) for logits in held] == [(4, 4), (4, 4), (4, 3), (3, 4), (3, 4), (3, 3)]


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_probabilities_of_all_words_add_up_to_1(scale):
    softmax, outputs, _ = draw(1, positions=3)
    for out in outputs:
        logs = softmax.log_probs(scale * out.expand(11, -1), torch.arange(11))
        assert torch.isfinite(logs).all() and (logs <= 1e-12).all()
        assert logs.exp().sum().item() == pytest.approx(1)


def test_no_positions_have_no_probabilities():
    softmax, outputs, targets = draw(2)
    assert softmax.log_probs(outputs[:0], targets[:0]).shape == (0,)


def test_gradients_reach_outputs_weight_and_bias_in_pieces_too(monkeypatch):
    softmax, outputs, targets = draw(3)
    outputs.requires_grad_()
    wanted = (outputs, *softmax.parameters())
    expected = torch.autograd.grad(
        -torch.nn.functional.cross_entropy(outputs @ softmax.weight.t() + softmax.bias, targets, reduction="sum"),
        wanted,
    )
    monkeypatch.setattr(bilmo.net.softmax, "BLOCK_ROWS", 4)
    found = torch.autograd.grad(softmax.log_probs(outputs, targets).sum(), wanted)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, atol=1e-12, rtol=1e-12)


def test_a_fresh_softmax_has_no_bias_and_weights_by_its_width():
    torch.manual_seed(0)
    softmax = Softmax(2000, 25)
    assert not softmax.bias.any()
    assert softmax.weight.std().item() == pytest.approx(0.2, rel=0.05)

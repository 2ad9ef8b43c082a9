import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

import bilmo.training.loss
from bilmo.net.softmax import Softmax
from bilmo.training.loss import LogUniform, full_loss, sampled_loss


def problem(words=50, width=6, positions=17, seed=0):
    torch.manual_seed(seed)
    softmax = Softmax(words, width).double()
    torch.nn.init.normal_(softmax.bias)
    outputs = torch.randn(positions, width, dtype=torch.float64, requires_grad=True)
    return softmax, outputs, torch.randint(words, (positions,))


def gradients(loss, softmax, outputs):
    return torch.autograd.grad(loss, [outputs, softmax.weight, softmax.bias])


@pytest.mark.parametrize("at_once", [1, 120, 1 << 22])
def test_the_full_loss_and_its_gradients_are_those_of_plain_autograd(monkeypatch, at_once):
    monkeypatch.setattr(bilmo.training.loss, "LOGITS_AT_ONCE", at_once)
    softmax, outputs, targets = problem()
    logits = outputs @ softmax.weight.t() + softmax.bias
    expected = torch.nn.functional.cross_entropy(logits, targets, reduction="mean")
    found, each = full_loss(softmax, outputs, targets)
    torch.testing.assert_close(each, torch.nn.functional.cross_entropy(logits, targets, reduction="none"))
    torch.testing.assert_close(found, expected)
    for a, b in zip(gradients(3 * found, softmax, outputs), gradients(3 * expected, softmax, outputs), strict=True):
        torch.testing.assert_close(a, b)


def test_a_loss_that_needs_no_gradient_is_the_same():
    softmax, outputs, targets = problem()
    with torch.no_grad(), FlopCounterMode(display=False) as work:
        alone, _ = full_loss(softmax, outputs, targets)
    assert work.get_total_flops() == 2 * outputs.numel() * len(softmax.weight)  # the logits and no product more
    torch.testing.assert_close(alone, full_loss(softmax, outputs, targets)[0].detach())


@settings(max_examples=20)
@given(st.integers(2, 400), st.data())
def test_drawn_words_are_distinct_and_as_many_as_asked_for(words, data):
    samples = data.draw(st.integers(1, words))
    drawn, draws = LogUniform(words).draw(samples, np.random.default_rng(0))
    assert len(set(drawn.tolist())) == samples <= draws
    assert drawn.min() >= 0 and drawn.max() < words


def test_words_are_met_as_often_as_expected():
    words, samples, rounds = 100, 20, 4000
    sampler, random = LogUniform(words), np.random.default_rng(1)
    met, expected = torch.zeros(words), torch.zeros(words)
    for _ in range(rounds):
        drawn, draws = sampler.draw(samples, random)
        met[drawn] += 1
        expected += sampler.log_expected(torch.arange(words), draws).exp()
    # Five standard deviations of a count; the number of draws is itself drawn, which moves it by a few per cent.
    slack = 5 * (rounds * 0.25) ** 0.5 + 0.05 * expected
    assert ((met - expected).abs() < slack).all()


def test_sampling_nearly_all_words_is_nearly_the_full_loss():
    softmax, outputs, targets = problem(words=60)
    full, _ = full_loss(softmax, outputs, targets)
    loss = sampled_loss(58, np.random.default_rng(0))
    mean = torch.stack([loss(softmax, outputs, targets)[0] for _ in range(50)]).mean()
    assert abs(float(mean.detach() / full.detach()) - 1) < 0.02


def test_the_sampled_gradient_points_where_the_full_one_does_on_average():
    softmax, outputs, targets = problem(words=80, positions=8)
    full = gradients(full_loss(softmax, outputs, targets)[0], softmax, outputs)
    sampled = sampled_loss(30, np.random.default_rng(0))
    total = [torch.zeros_like(part) for part in full]
    for _ in range(3000):
        loss, _ = sampled(softmax, outputs, targets)
        for sum_, part in zip(total, gradients(loss, softmax, outputs), strict=True):
            sum_ += part / 3000
    for mean, exact in zip(total, full, strict=True):
        assert torch.nn.functional.cosine_similarity(mean.flatten(), exact.flatten(), dim=0) > 0.99
        assert float((mean - exact).norm() / exact.norm()) < 0.15


def test_a_target_that_was_drawn_does_not_count_twice():
    softmax, outputs, _ = problem(words=10, positions=10)
    targets = torch.arange(10)
    logits = (outputs @ softmax.weight.t() + softmax.bias).detach()
    drawn, draws = LogUniform(10).draw(9, np.random.default_rng(3))
    correction = LogUniform(10).log_expected(torch.arange(10), draws)
    expected = 0.0
    for position, target in enumerate(targets.tolist()):
        seen = [target, *(word for word in drawn.tolist() if word != target)]
        scores = (logits[position] - correction)[seen]
        expected += float(torch.logsumexp(scores, dim=0) - scores[0])
    found, _ = sampled_loss(9, np.random.default_rng(3))(softmax, outputs, targets)
    assert float(found.detach()) == pytest.approx(expected / 10, rel=1e-5)


@pytest.mark.parametrize("at_once", [1, 1 << 22])
def test_the_sampled_gradients_are_those_of_plain_autograd(monkeypatch, at_once):
    monkeypatch.setattr(bilmo.training.loss, "LOGITS_AT_ONCE", at_once)
    softmax, outputs, targets = problem(words=40)
    words, draws = LogUniform(40).draw(12, np.random.default_rng(5))
    correction = LogUniform(40).log_expected(torch.arange(40), draws)
    logits = outputs @ softmax.weight.t() + softmax.bias - correction
    true = logits.gather(1, targets[:, None])
    others = logits[:, words].masked_fill(targets[:, None] == words, float("-inf"))
    expected = (torch.logsumexp(torch.cat([true, others], dim=1), dim=1) - true[:, 0]).mean()
    found, _ = sampled_loss(12, np.random.default_rng(5))(softmax, outputs, targets)
    torch.testing.assert_close(found, expected)
    for a, b in zip(gradients(2 * found, softmax, outputs), gradients(2 * expected, softmax, outputs), strict=True):
        torch.testing.assert_close(a, b)


def test_a_target_that_is_all_that_was_drawn_costs_nothing(monkeypatch):
    monkeypatch.setattr(LogUniform, "draw", lambda self, samples, random: (torch.tensor([7]), 1))
    softmax, outputs, _ = problem()
    found, each = sampled_loss(1, np.random.default_rng(0))(softmax, outputs, torch.full((len(outputs),), 7))
    assert not each.any()
    assert all(not part.any() for part in gradients(found, softmax, outputs))


def test_logits_far_from_zero_are_no_danger():
    softmax, outputs, targets = problem()
    with torch.no_grad():
        softmax.bias.add_(5000.0)
    logits = outputs @ softmax.weight.t() + softmax.bias
    found, _ = full_loss(softmax, outputs, targets)
    torch.testing.assert_close(found, torch.nn.functional.cross_entropy(logits, targets))

"""What the optimiser does to rows that are seldom used, and its rate over a run."""

from __future__ import annotations

import pytest
import torch

from bilmo.training.optimizer import optimizer_of, rate_at
from bilmo.training.recipe import TrainRecipe
from small_runs import loop, write_text

RATE = 0.01


def moved(model, optimizer, sizes):
    """How far each parameter moves in one step after a gradient of these sizes; 0 for the others."""
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for name, p in model.named_parameters():
        p.grad = torch.full_like(p, sizes.get(name, 0.0))
    optimizer.step()
    return {name: (p.detach() - before[name]).abs().max().item() for name, p in model.named_parameters()}


@pytest.fixture
def model(tmp_path):
    write_text(tmp_path)
    return loop(tmp_path, words="chars+table").model


def test_a_small_gradient_moves_the_row_of_a_word_little_and_anything_else_by_the_rate(model, tmp_path):
    recipe = loop(tmp_path, rate=RATE).recipe
    assert recipe.optimizer == "adam"
    rows = ("softmax.weight", "softmax.bias", "bilm.words.table.weight")
    other = "bilm.forward_stack.0.input"
    far = moved(model, optimizer_of(model, recipe), dict.fromkeys((*rows, other), 1e-06))
    assert far[other] == pytest.approx(RATE, rel=0.02)
    assert all(0 < far[name] < 0.02 * RATE for name in rows)


def test_a_large_gradient_moves_both_by_the_rate(model, tmp_path):
    recipe = loop(tmp_path, rate=RATE).recipe
    names = ("softmax.weight", "bilm.forward_stack.0.input")
    far = moved(model, optimizer_of(model, recipe), dict.fromkeys(names, 1.0))
    assert [far[name] for name in names] == pytest.approx([RATE, RATE], rel=0.02)


@pytest.mark.parametrize("optimizer", ["adam", "adagrad", "sgd"])
def test_every_weight_is_trained_once_and_biases_do_not_decay(model, tmp_path, optimizer):
    groups = optimizer_of(model, loop(tmp_path, optimizer=optimizer, weight_decay=0.3).recipe).param_groups
    decays = {id(p): group["weight_decay"] for group in groups for p in group["params"]}
    trained = [p for p in model.parameters() if p.requires_grad]
    assert sum(len(group["params"]) for group in groups) == len(trained)
    assert {id(p): 0.3 if p.dim() > 1 else 0.0 for p in trained} == decays


def test_the_rate_rises_then_falls_in_a_straight_line_or_stays():
    recipe = TrainRecipe(rate=0.8, warm_up=0.2)
    assert [rate_at(recipe, done) for done in (0.2, 0.4, 0.6, 0.8, 1.0, 1.1)] == pytest.approx(
        [0.8, 0.6, 0.4, 0.2, 0, 0]
    )
    assert 0 < rate_at(recipe, 0.0) < 0.001 and rate_at(recipe, 0.1) == pytest.approx(0.4, rel=1e-3)
    level = TrainRecipe(rate=0.8, warm_up=0.0, decay=False)
    assert [rate_at(level, done) for done in (0.0, 0.5, 1.0)] == [0.8, 0.8, 0.8]

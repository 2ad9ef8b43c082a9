"""The optimizer, and its rate over a run.

Knows: torch.optim, TrainRecipe. Blind to: text, files.
"""

from __future__ import annotations

import torch
from torch import nn

from bilmo.training.model import PER_WORD_WEIGHTS
from bilmo.training.recipe import TrainRecipe

FLOOR, NO_FLOOR = 1e-4, 1e-8
"""Adam divides a gradient by its usual size. The row of a rare word seldom has a gradient, so its usual size is almost
zero, and one use of the word would move its row as far as hundreds of uses move the row of a frequent word: a small
text would be overfitted. So the divisor has a floor in weights with one row per word."""


def optimizer_of(model: nn.Module, recipe: TrainRecipe) -> torch.optim.Optimizer:
    """The optimizer of the recipe; weight decay applies to matrices, not to biases and start states."""
    adam = recipe.optimizer == "adam"
    alike: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            decay = recipe.weight_decay if parameter.dim() > 1 else 0.0
            floor = FLOOR if adam and name.removeprefix("bilm.") in PER_WORD_WEIGHTS else NO_FLOOR
            alike.setdefault((decay, floor), []).append(parameter)
    if adam:
        groups = [{"params": some, "weight_decay": decay, "eps": floor} for (decay, floor), some in alike.items()]
        return torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.99), fused=True)
    groups = [{"params": some, "weight_decay": decay} for (decay, _), some in alike.items()]
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=recipe.rate)
    here = all(p.device.type == "cpu" for p in model.parameters())  # torch has a fused Adagrad for CPUs only
    return torch.optim.Adagrad(groups, lr=recipe.rate, initial_accumulator_value=1.0, fused=here)


def rate_at(recipe: TrainRecipe, done: float) -> float:
    """The learning rate when a share `done` of the run is over: up from 0, then constant or linearly down to 0."""
    if done < recipe.warm_up:
        return recipe.rate * (done + 1e-4) / (recipe.warm_up + 1e-4)
    if not recipe.decay:
        return recipe.rate
    return recipe.rate * (1 - min(1.0, done)) / (1 - recipe.warm_up)

"""How well a model predicts text: the loss by the full softmax over every word, without dropout or sampling.

Knows: model, windows. Blind to: training, files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bilmo.ids.chars import Ids
from bilmo.ids.windows import Text, Whole
from bilmo.net.config import Direction
from bilmo.net.softmax import Softmax
from bilmo.net.state import State
from bilmo.training.distributed.processes import ALONE, Processes
from bilmo.training.loss import full_loss
from bilmo.training.model import LanguageModel, WordArrays

BATCH = 2048
"""Words per batch."""


@dataclass(frozen=True)
class HeldOutLoss:
    """Losses in nats per word, boundaries included."""

    each: dict[Direction, float]
    known: float
    """Of known words only, mean of both directions: how well a model predicts `<UNK>` says little."""
    words: int
    """Words that each direction predicted."""

    @property
    def mean(self) -> float:
        """The mean loss of both directions."""
        return sum(self.each.values()) / len(self.each)


@torch.no_grad()
def evaluate(
    model: LanguageModel,
    text: Text,
    words: WordArrays,
    targets: Callable[[Ids], Ids],
    start: Callable[[int], State],
    *,
    unknown: int,
    most: int | None = None,
    processes: Processes = ALONE,
) -> HeldOutLoss:
    """The losses on a text; each sentence begins at `start`.

    unknown: the target that stands for unknown words.
    most: approximate number of words to evaluate, taken evenly from the whole text; None for all.
    processes: those that share the work; all of them have the result.
    """
    model.eval()
    sentences = np.arange(len(text.ends))
    steps = text.steps(sentences)
    if most is not None and steps.sum() > most:
        sentences = np.arange(0, len(steps), steps.sum() / most).astype(np.int64)
    batches = Whole(text, sentences, budget=BATCH, longest=int(steps.max()), seed=0)
    totals: dict[Direction, float] = dict.fromkeys(model.bilm.config.directions, 0.0)
    count = known_targets = 0
    known_loss = 0.0

    def loss(softmax: Softmax, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        nonlocal known_loss, known_targets
        mean, each = full_loss(softmax, outputs, targets)
        known = targets != unknown
        known_loss += float(each[known].double().sum())
        known_targets += int(known.sum())
        return mean, each

    for number in range(processes.rank, len(batches), processes.world):
        batch = batches[number]
        found, _ = model(batch, words, targets, start(len(batch.lengths)), loss)
        count += found.words
        for direction, mean in found.each.items():
            totals[direction] += mean * found.words
    if not processes.alone:
        mine = [*totals.values(), known_loss, known_targets, count]
        *sums, known_loss, known, words_of_all = processes.sum(torch.tensor(mine, dtype=torch.float64)).tolist()
        totals, known_targets, count = dict(zip(totals, sums, strict=True)), int(known), int(words_of_all)
    each = {direction: total / count for direction, total in totals.items()}
    return HeldOutLoss(each, known=known_loss / known_targets, words=count)

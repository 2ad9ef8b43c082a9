"""How well a model predicts text: the loss by the full softmax over every word, without dropout or sampling.

Knows: model, windows. Blind to: training, files.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from bilmo.ids.chars import Ids
from bilmo.ids.windows import Text, Whole
from bilmo.net.config import Direction
from bilmo.net.state import State
from bilmo.training.loss import full_loss
from bilmo.training.model import LanguageModel, WordArrays

BATCH = 2048
"""Words per batch."""


@torch.no_grad()
def evaluate(
    model: LanguageModel,
    text: Text,
    words: WordArrays,
    targets: Callable[[Ids], Ids],
    start: Callable[[int], State],
    *,
    most: int | None = None,
) -> tuple[dict[Direction, float], int]:
    """The loss of each direction, in nats per word, and the number of words; each sentence begins at `start`.

    most: approximate number of words to evaluate, taken evenly from the whole text; None for all.
    """
    model.eval()
    sentences = np.arange(len(text.ends))
    steps = text.steps(sentences)
    if most is not None and steps.sum() > most:
        sentences = np.arange(0, len(steps), steps.sum() / most).astype(np.int64)
    batches = Whole(text, sentences, budget=BATCH, longest=int(steps.max()), seed=0)
    totals: dict[Direction, float] = {}
    count = 0
    for number in range(len(batches)):
        batch = batches[number]
        found, _ = model(batch, words, targets, start(len(batch.lengths)), full_loss)
        count += found.words
        for direction, loss in found.each.items():
            totals[direction] = totals.get(direction, 0.0) + loss * found.words
    return {direction: total / count for direction, total in totals.items()}, count

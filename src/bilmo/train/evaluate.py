"""How well a model predicts text: its loss by the full softmax, over every word, nothing dropped or sampled.

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
from bilmo.train.loss import full_loss
from bilmo.train.model import LanguageModel, WordArrays

AT_ONCE = 2048
"""Steps judged at a time."""


@torch.no_grad()
def judge(
    model: LanguageModel,
    text: Text,
    words: WordArrays,
    targets: Callable[[Ids], Ids],
    start: Callable[[int], State],
    *,
    most: int | None = None,
) -> tuple[dict[Direction, float], int]:
    """Nats a word of each direction over sentences that each begin at `start`, and how many words that were.

    `most`: so many words, about, are enough; they are taken from all over the text.
    """
    model.eval()
    sentences = np.arange(len(text.ends))
    steps = text.steps(sentences)
    if most is not None and steps.sum() > most:
        sentences = np.arange(0, len(steps), steps.sum() / most).astype(np.int64)
    whole = Whole(text, sentences, budget=AT_ONCE, longest=int(steps.max()), seed=0)
    totals: dict[Direction, float] = {}
    count = 0
    for number in range(len(whole)):
        step = whole[number]
        judged, _ = model(step, words, targets, start(len(step.lengths)), full_loss)
        count += judged.words
        for direction, loss in judged.each.items():
            totals[direction] = totals.get(direction, 0.0) + loss * judged.words
    return {direction: total / count for direction, total in totals.items()}, count

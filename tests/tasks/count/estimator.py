"""The head and the estimator of the task `count`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bilmo.tasks.core.estimator import Estimator
from bilmo.tasks.network.head import Head
from bilmo.tasks.network.input import TaskInput
from bilmo.tasks.network.probabilities import LabelProbabilities
from tasks.count.task import COUNT, CountSettings, Pair, PairItem


class CountHead(Head[PairItem, int]):
    """The sum of a learned number per token, of both texts together, to one score per answer."""

    def __init__(self, input: TaskInput, settings: CountSettings) -> None:
        super().__init__()
        widths = [input.width + 1, *[settings.hidden] * settings.depth]
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.last = nn.Linear(widths[-1], 3)

    def scores(self, input: TaskInput, items: Sequence[PairItem]) -> Tensor:
        sums = []
        for texts in ([item.first for item in items], [item.second for item in items]):
            inputs = input(texts)
            tokens = torch.cat([inputs.vectors, inputs.mask.unsqueeze(-1).float()], dim=-1)
            sums.append(tokens.sum(dim=1))  # padding is zero
        x = sums[0] + sums[1]
        for layer in self.hidden:
            x = torch.sin(layer(x))
        scores: Tensor = self.last(x)
        return scores

    def loss(self, input: TaskInput, items: Sequence[PairItem]) -> Tensor:
        return F.cross_entropy(self.scores(input, items), torch.tensor([item.answer for item in items]))

    def predict(self, input: TaskInput, items: Sequence[PairItem]) -> list[int]:
        found: list[int] = self.scores(input, items).argmax(dim=1).tolist()
        return found

    def confidence(self, input: TaskInput, items: Sequence[PairItem]) -> list[LabelProbabilities]:
        found: list[LabelProbabilities] = torch.softmax(self.scores(input, items), dim=1).tolist()
        return found


class TokenCounter(Estimator[Pair, PairItem, int, CountSettings]):
    """Predicts the number of tokens in two texts, modulo 3."""

    task = COUNT

"""Heads that give one score per label: loss, the most probable label, and probabilities.

Knows: Head. Blind to: what labels mean, how scores are computed.
"""

# B examples, K labels

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from bilmo.tasks.network.batch import Item
from bilmo.tasks.network.head import Answer, Head
from bilmo.tasks.network.input import TaskInput
from bilmo.tasks.network.probabilities import LabelProbabilities


class LabelItem(Item, Protocol):
    """An example with one label."""

    @property
    def label(self) -> int | None:
        """The number of the label; None where it is not known."""


LabelItemT = TypeVar("LabelItemT", bound=LabelItem)


class LabelHead(Head[LabelItemT, Answer]):
    """One label per example."""

    def __init__(self, labels: Sequence[Answer]) -> None:
        super().__init__()
        self.labels = tuple(labels)

    @abstractmethod
    def scores(self, input: TaskInput, items: Sequence[LabelItemT]) -> Tensor:
        """(B, K): one score per label."""

    def loss(self, input: TaskInput, items: Sequence[LabelItemT]) -> Tensor:
        """Nats per example."""
        return F.cross_entropy(self.scores(input, items), torch.tensor([item.label for item in items]))

    def predict(self, input: TaskInput, items: Sequence[LabelItemT]) -> list[Answer]:
        """The most probable label of each example."""
        return [self.labels[k] for k in self.scores(input, items).argmax(dim=1).tolist()]

    def confidence(self, input: TaskInput, items: Sequence[LabelItemT]) -> list[LabelProbabilities]:
        """For each example the probability of each label."""
        found: list[LabelProbabilities] = torch.softmax(self.scores(input, items), dim=1).tolist()
        return found

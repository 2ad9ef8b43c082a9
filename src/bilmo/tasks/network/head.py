"""What a head is: the trained part on top of the input, with its loss and its predictions.

Knows: TaskInput. Blind to: what labels mean, data files, how heads are trained.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from torch import Tensor, nn

from bilmo.tasks.network.batch import Item
from bilmo.tasks.network.input import TaskInput

ItemT = TypeVar("ItemT", bound=Item)
Answer = TypeVar("Answer")


class Head(nn.Module, ABC, Generic[ItemT, Answer]):
    """Vectors to answers. A head asks the input for the vectors of the texts that it needs."""

    @abstractmethod
    def loss(self, input: TaskInput, items: Sequence[ItemT]) -> Tensor:
        """The mean loss of a batch of items that carry their answers."""

    @abstractmethod
    def predict(self, input: TaskInput, items: Sequence[ItemT]) -> list[Answer]:
        """One answer per item."""

    @abstractmethod
    def confidence(self, input: TaskInput, items: Sequence[ItemT]) -> list[list[float]]:
        """For each item the probabilities that are written beside its answer: one per label, or one per token."""


class TaskNetwork(nn.Module, Generic[ItemT, Answer]):
    """The input and the head of a task: everything that is trained."""

    def __init__(self, input: TaskInput, head: Head[ItemT, Answer]) -> None:
        super().__init__()
        self.input, self.head = input, head

    def loss(self, items: Sequence[ItemT]) -> Tensor:
        """The mean loss of a batch, with the penalty on the weights of the mixes."""
        return self.head.loss(self.input, items) + self.input.l2()

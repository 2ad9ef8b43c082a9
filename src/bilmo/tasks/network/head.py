"""The interface of a head: the trained part on top of the input, with its loss and its predictions.

Knows: TaskInput. Blind to: what labels mean, data files, how heads are trained.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from torch import Tensor, nn

from bilmo.tasks.network.batch import Item, tokens_of
from bilmo.tasks.network.input import TaskInput
from bilmo.tasks.network.probabilities import Probabilities

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
    def confidence(self, input: TaskInput, items: Sequence[ItemT]) -> Sequence[Probabilities]:
        """For each item the probabilities that are written beside its answer."""

    def cost(self, item: ItemT) -> int:
        """About how many tokens are computed to train on an item: batches of costly items have fewer of them."""
        return tokens_of(item)


class TaskNetwork(nn.Module, Generic[ItemT, Answer]):
    """The input and the head of a task: everything that is trained."""

    def __init__(self, input: TaskInput, head: Head[ItemT, Answer]) -> None:
        super().__init__()
        self.input, self.head = input, head

    def loss(self, items: Sequence[ItemT]) -> Tensor:
        """The mean loss of a batch, with the penalty on the weights of the mixes."""
        return self.head.loss(self.input, items) + self.input.l2()

    def bilm_parameters(self) -> list[nn.Parameter]:
        """The parameters of a biLM that is trained with the task; they have their own learning rate."""
        return [] if self.input.tuned is None else _trained(self.input.tuned)

    def own_parameters(self) -> list[nn.Parameter]:
        """All other parameters that are trained."""
        bilm = set(map(id, self.bilm_parameters()))
        return [parameter for parameter in _trained(self) if id(parameter) not in bilm]

    def learned_state(self) -> dict[str, Tensor]:
        """The tensors that training changes; given word vectors and a frozen biLM are not among them."""
        frozen = {name for name, parameter in self.named_parameters() if not parameter.requires_grad}
        return {name: value.detach() for name, value in self.state_dict().items() if name not in frozen}

    def own_state(self) -> dict[str, Tensor]:
        """The same without the biLM, which has a folder of its own."""
        tuned = self.input.tuned
        bilm = set() if tuned is None else set(tuned.state_dict(prefix="input.tuned."))
        return {name: value for name, value in self.learned_state().items() if name not in bilm}


def _trained(module: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in module.parameters() if parameter.requires_grad]

"""The state that every sentence starts from, as part of a torch module.

Knows: state, torch. Blind to: the network, where the state comes from.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from torch import Tensor, nn

from bilmo.net.state import State


class StartState(nn.Module):
    """A state of one row, repeated for every sentence: learned, or fixed and not saved with the module."""

    def __init__(self, state: State, *, learned: bool = False) -> None:
        super().__init__()
        for name, value in self.tensors(state).items():
            if learned:
                self.register_parameter(name, nn.Parameter(value.clone()))
            else:
                self.register_buffer(name, value.clone(), persistent=False)

    def forward(self, rows: int) -> State:
        """The state of `rows` rows."""
        parts: Iterable[tuple[str, Tensor]] = chain(self.named_parameters(), self.named_buffers())
        return State.from_named({name.replace("_", "."): part.expand(rows, -1) for name, part in parts})

    def extra_repr(self) -> str:
        """Whether it is trained, for `repr`."""
        return "learned" if any(True for _ in self.parameters()) else "fixed"

    @staticmethod
    def tensors(state: State) -> dict[str, Tensor]:
        """A state of one row by the names that its parts have in a module, where torch allows no dot; sorted."""
        return {name.replace(".", "_"): part.detach()[0] for name, part in sorted(state.named().items())}

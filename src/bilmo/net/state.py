"""The recurrent state: what every row of a batch remembers, for each direction and layer.

Knows: torch. Blind to: the network, files.
"""

# B rows, D output width, H memory cells

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from bilmo.errors import WeightsError
from bilmo.net.config import BOTH, Direction

LayerState = tuple[Tensor, ...]
"""(h,) of (B, D); for an LSTM (h, c) with c of (B, H)."""

PARTS = ("h", "c")
"""Names of the parts of a layer's state, in their order."""


@dataclass(frozen=True)
class State:
    """One tuple of tensors for each direction and layer; row k belongs to row k of the batch."""

    stacks: dict[Direction, list[LayerState]]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.stacks.values()))[0][0])

    def to(self, device: torch.device) -> State:
        """The same state on another device."""
        return self._map(lambda part: part.to(device))

    def detach(self) -> State:
        """The same state, cut off from the graph of gradients."""
        return self._map(Tensor.detach)

    def expand(self, rows: int) -> State:
        """Repeat a one-row state for `rows` rows."""
        return self._map(lambda part: part.expand(rows, -1))

    def select(self, rows: Tensor) -> State:
        """Some rows, by number, in the given order."""
        return self._map(lambda part: part.index_select(0, rows))

    def replace_first(self, new: State) -> State:
        """A state of the same size whose first rows come from `new`; the remaining rows are unchanged."""
        stacks = {}
        for direction, layers in self.stacks.items():
            pairs = zip(layers, new.stacks[direction], strict=True)
            stacks[direction] = [
                tuple(torch.cat([b[: len(a)], a[len(b) :]]) for a, b in zip(old, other, strict=True))
                for old, other in pairs
            ]
        return State(stacks)

    def named(self) -> dict[str, Tensor]:
        """Every tensor by a flat name such as `forward.0.h`: direction, layer, part."""
        return {
            f"{direction}.{number}.{name}": part
            for direction, layers in self.stacks.items()
            for number, layer in enumerate(layers)
            for name, part in zip(PARTS, layer, strict=False)
        }

    @classmethod
    def from_named(cls, tensors: Mapping[str, Tensor]) -> State:
        """The state with these tensors, named as in `named`, in any order."""
        rest = dict(tensors)
        stacks: dict[Direction, list[LayerState]] = {}
        for direction in BOTH:
            layers: list[LayerState] = []
            while f"{direction}.{len(layers)}.h" in rest:
                names = [f"{direction}.{len(layers)}.{part}" for part in PARTS]
                layers.append(tuple(rest.pop(name) for name in names if name in rest))
            if layers:
                stacks[direction] = layers
        if rest or not stacks:
            found = ", ".join(sorted(tensors)) or "nothing"
            raise WeightsError(f"a state has tensors named like forward.0.h and backward.1.c; found {found}")
        return cls(stacks)

    def _map(self, change: Callable[[Tensor], Tensor]) -> State:
        return State({d: [tuple(map(change, layer)) for layer in layers] for d, layers in self.stacks.items()})

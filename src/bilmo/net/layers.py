"""The layers of a batch: packed without padding, as the driver computes them, or padded, as tasks read them.

Knows: numpy, torch. Blind to: how layers are computed and what they are used for.
"""

# B rows, T steps, N steps of all rows, K layers, D one direction

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bilmo.ids.chars import Ids
from bilmo.net.config import Direction
from bilmo.net.kernels.recurrence import Steps


@dataclass(frozen=True)
class Layers:
    """Layer 0 is the word alone (once for each direction), the others see its context."""

    values: Tensor
    """(L+1, B, T, 2D), zero where there is no token; (L+1, B, T, D) for a network of one direction."""
    mask: Tensor
    """(B, T), True on real tokens."""

    def inside(self) -> Layers:
        """The same without boundaries: what lies between `<S>` and `</S>` of each row."""
        mask = self.mask[:, 2:]  # a row of n tokens had n + 2
        values = self.values[:, :, 1:-1] * mask.unsqueeze(-1)
        return Layers(values, mask)


class Packing:
    """Rows of unequal length packed without padding: step 0 of all rows, step 1, ..., the longest row first."""

    def __init__(self, lengths: Ids) -> None:
        """`lengths` (B,), each 1 or more."""
        self.lengths = lengths
        self.order: Ids = np.argsort(-lengths, kind="stable")
        """(B,): rows, longest first."""
        self.mask = np.arange(max(lengths)) < lengths[:, None]
        """(B, T), True on real steps."""
        self._running = self.mask[self.order].T  # (T, B sorted)
        self._rows = tuple(self._running.sum(axis=1).tolist())  # rows still running at each step

    def pack(self, values: Ids) -> Tensor:
        """(B, T) to (N,)."""
        return torch.from_numpy(values[self.order].T[self._running])

    def chunks(self, length: int) -> Iterator[tuple[slice, Steps]]:
        """All steps, at most `length` of a row at a time: the slice of the packed values, and its steps."""
        stop = 0
        for first in range(0, len(self._rows), length):
            steps = Steps(self._rows[first : first + length])
            start, stop = stop, stop + sum(steps.rows)
            yield slice(start, stop), steps

    def places(self, starts: Ids, direction: Direction) -> Tensor:
        """(N,): where each packed step belongs if row k begins at `starts[k]`; backward rows run from their end."""
        step, rank = np.nonzero(self._running)
        row = self.order[rank]
        return torch.from_numpy(starts[row] + (self.lengths[row] - 1 - step if direction == "backward" else step))


@dataclass(frozen=True)
class PackedLayers:
    """The result of the driver: the layers of each direction, in the packed order in which that direction reads."""

    packing: Packing
    outputs: dict[Direction, Tensor]
    """(K, N, D) for each direction; K is 1 where only the top layer was kept."""

    @property
    def tops(self) -> list[Tensor]:
        """The top layer of each direction, (N, D) each."""
        return [values[-1] for values in self.outputs.values()]

    def padded(self) -> Layers:
        """(K, B, T, 2D) and its mask, both directions in the order of the sentence."""
        rows, steps = self.packing.mask.shape
        halves = []
        for direction, values in self.outputs.items():
            places = self.packing.places(np.arange(rows) * steps, direction).to(values.device)
            flat = values.new_zeros(len(values), rows * steps, values.shape[2])
            halves.append(flat.index_copy(1, places, values).unflatten(1, (rows, steps)))
        joined = torch.cat(halves, dim=-1)
        return Layers(joined, torch.from_numpy(self.packing.mask).to(joined.device))

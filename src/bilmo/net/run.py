"""Runs word vectors through the stacks of both directions. All code that computes layers uses it.

Rows are packed without padding, and each direction has a thread. Without gradients a long sentence goes through in
chunks, the forward stack left to right, the backward stack right to left, each chunk from the state after the last
one: memory holds the result and little more, and the result is the same.

Knows: layers, state, threads. Blind to: the kind of a cell, where word vectors come from, what layers are used for.
"""

# B rows, T steps, N steps of all rows, U distinct words, I input width, D output width of one direction, L layers

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bilmo.ids.batch import Places
from bilmo.net.config import Direction
from bilmo.net.kernels.recurrence import Steps
from bilmo.net.kernels.threads import side_by_side, trained_side_by_side
from bilmo.net.layers import PackedLayers, Packing
from bilmo.net.state import LayerState, State


@dataclass(frozen=True)
class Part:
    """The packed positions of a larger batch that are computed here, for dropout to be that of the larger batch."""

    positions: int
    """Of the larger batch."""
    own: Tensor
    """(N,): which of them are computed here."""


Layer = Callable[[Tensor, Steps, LayerState], tuple[Tensor, LayerState]]
"""A recurrent layer, trainable or prepared: packed inputs (N, I) and a state to packed outputs (N, D) and the state
after each row's last step."""

CHUNK_STEPS, MIN_ROW_STEPS = 4096, 256
"""Steps of one chunk, summed over all rows; and the minimum number of steps of each row."""


def run(
    stacks: Mapping[Direction, Sequence[Layer]],
    words: Tensor,
    places: Places,
    state: State,
    *,
    skip: bool = False,
    dropout: float = 0.0,
    only_top: bool = False,
    separate_graphs: bool = False,
    part: Part | None = None,
    out: Tensor | None = None,
) -> tuple[PackedLayers, State]:
    """Word vectors (U, I) and the state before a batch to its layers and the state after it.

    skip: from the second layer on, the input of a layer is added to its output.
    dropout: share of each layer's input, and of the top layer if only that is kept, that is set to 0.
    only_top: keep the top layer of each direction only.
    separate_graphs: one graph of gradients for each direction, so that backward runs them in two threads as well.
        Gradients of weights then come from `backward()` only, not from `torch.autograd.grad`, and only once.
    part: what this batch is of a larger one, whose other rows are computed elsewhere.
    out: (K, N, 2D) to write layers 0 to K - 1 into, row after row, without padding; layers above are not computed, and
        the returned layers are empty. Needs gradients to be off.
    """
    if out is not None and torch.is_grad_enabled():
        raise ValueError("layers are written to `out` only without gradients: call run within torch.no_grad()")
    packing = Packing(places.lengths)
    order = torch.from_numpy(packing.order).to(words.device)
    before = state.select(order)
    chunk = (
        int(max(places.lengths)) if torch.is_grad_enabled() or part else max(MIN_ROW_STEPS, CHUNK_STEPS // len(order))
    )
    after: dict[Direction, list[LayerState]] = {}
    drop = _dropped if part is None else partial(_dropped_part, part=part)

    def one_direction(half: int, direction: Direction, random: torch.Generator | None, words: Tensor) -> Tensor:
        cells, memory = stacks[direction], list(before.stacks[direction])
        reads = packing.pack(places.forward if direction == "forward" else places.backward).to(words.device)  # (N,)
        kept = []
        if out is not None:
            cells = cells[: len(out) - 1]
            width = out.shape[2] // len(stacks)
            target = out[:, :, half * width : (half + 1) * width]
            writes = packing.places(np.cumsum(places.lengths) - places.lengths, direction).to(words.device)
        for piece, steps in packing.chunks(chunk):
            # F.embedding, because the backward of plain indexing accumulates in arbitrary order, so it is not
            # deterministic.
            outputs = [F.embedding(reads[piece], words)]  # (n, I)
            for number, cell in enumerate(cells):
                x = drop(outputs[-1], dropout, random) if dropout else outputs[-1]
                value, last = cell(x, steps, tuple(s[: steps.rows[0]] for s in memory[number]))
                # The next layer and the reader see the sum; the recurrence itself does not. Layer 0 is never added.
                outputs.append(value + x if skip and number else value)
                if steps.rows[0] < len(order):  # the other rows ended in an earlier chunk
                    pairs = zip(last, memory[number], strict=True)
                    last = tuple(torch.cat([new, s[len(new) :]]) for new, s in pairs)
                memory[number] = last
            if out is not None:
                for number, value in enumerate(outputs):
                    target[number].index_copy_(0, writes[piece], value)
            elif only_top:
                kept.append((drop(outputs[-1], dropout, random) if dropout else outputs[-1])[None])
            else:
                kept.append(torch.stack(outputs))
        after[direction] = memory
        return kept[0] if len(kept) == 1 else torch.cat(kept, dim=1) if kept else words.new_empty(0, 0, 0)

    tasks = [
        partial(one_direction, half, direction, _generator(words.device) if dropout else None)
        for half, direction in enumerate(stacks)
    ]
    if not torch.is_grad_enabled():
        values = side_by_side([partial(task, words) for task in tasks])
    elif separate_graphs:
        values = trained_side_by_side(tasks, words)
    else:
        values = [task(words) for task in tasks]
    after_all = State({direction: after[direction] for direction in stacks})
    return PackedLayers(packing, dict(zip(stacks, values, strict=True))), after_all.select(torch.argsort(order))


def _dropped(x: Tensor, share: float, random: torch.Generator | None) -> Tensor:
    """A share of the values set to 0, and the others enlarged to make up for it."""
    kept = torch.empty_like(x).bernoulli_(1 - share, generator=random)
    return x * kept.div_(1 - share)


def _dropped_part(x: Tensor, share: float, random: torch.Generator | None, part: Part) -> Tensor:
    """As `_dropped`, with the values that are dropped in the larger batch."""
    kept = x.new_empty(part.positions, x.shape[1]).bernoulli_(1 - share, generator=random)
    return x * kept.index_select(0, part.own).div_(1 - share)


def _generator(device: torch.device) -> torch.Generator:
    """A generator for one direction, seeded by torch's own: two threads cannot share one."""
    return torch.Generator(device).manual_seed(int(torch.randint(2**62, ())))

"""A group of sentences through both stacks: word vectors in, layers out, for sentences of any length.

A long sentence goes through in chunks, the forward stack left to right, the backward stack right to left, each from
the state that the chunk before left behind. So memory holds the result and little more, and the result is the same.

Knows: the network, numpy. Blind to: where word vectors come from, what is done with layers.
"""

# B sentences, T tokens with both boundaries, N tokens of all sentences, U distinct words, D one direction, L layers

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import torch
from torch import Tensor

from bilmo.ids.chars import Ids
from bilmo.net.bilm import BiLM, Rows
from bilmo.net.config import Direction
from bilmo.net.kernels.threads import side_by_side
from bilmo.net.state import LayerState, State

CHUNK, LEAST = 4096, 256
"""Tokens of all sentences together that go through a stack at once, but no fewer steps of a sentence than this."""


def in_context(
    network: BiLM, words: Tensor, places: Mapping[Direction, Ids], lengths: Ids, before: State, layers: int
) -> tuple[Tensor, State]:
    """Layers (layers + 1, N, 2D) of a group, one sentence after the other, and the state after it.

    words (U, D); places (B, T) into them, for each direction in its own order; lengths (B,).
    """
    width = network.config.width
    values = torch.empty(layers + 1, int(lengths.sum()), network.config.vector_width)
    after: dict[Direction, list[LayerState]] = {}

    def run(half: int, direction: Direction) -> None:
        part = values[:, :, half * width : (half + 1) * width]
        after[direction] = _through(
            network, words, places[direction], lengths, before.stacks[direction], part, direction
        )

    side_by_side([partial(run, half, direction) for half, direction in enumerate(network.config.directions)])
    return values, State(after)


def _through(
    network: BiLM,
    words: Tensor,
    places: Ids,
    lengths: Ids,
    state: list[LayerState],
    values: Tensor,
    direction: Direction,
) -> list[LayerState]:
    """One direction, chunk after chunk: fills values (layers + 1, N, D) and gives the state after."""
    begins = np.cumsum(lengths) - lengths
    chunk = max(LEAST, CHUNK // len(lengths))
    layers = len(values) - 1
    for first in range(0, int(max(lengths)), chunk):
        live = np.flatnonzero(lengths > first)
        rows = Rows(np.minimum(lengths[live] - first, chunk))
        x = words[rows.pack(places[live, first : first + chunk])]  # (steps, D)
        some = len(live) < len(lengths)
        now = [tuple(s[live] for s in layer) for layer in state] if some else state
        outputs, last = network.stack(direction, x, rows, now, layers)
        row, step = rows.each
        row, step = live[row], step + first
        at = torch.from_numpy(begins[row] + (lengths[row] - 1 - step if direction == "backward" else step))
        for number, output in enumerate(outputs):
            values[number].index_copy_(0, at, output)
        if some:
            pairs = zip(state, last, strict=False)  # the layers that were computed
            last = [tuple(_replaced(s, live, new) for s, new in zip(a, b, strict=True)) for a, b in pairs]
        state = [*last, *state[layers:]]
    return state


def _replaced(state: Tensor, rows: Ids, new: Tensor) -> Tensor:
    """A state (B, any) with some rows put in place of its own."""
    return state.index_copy(0, torch.from_numpy(rows), new)

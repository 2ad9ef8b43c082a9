"""The network: a word encoder, a recurrent stack for each direction, and the layers they give.

Knows: ids.batch.Batch, words, cells, layers. Blind to: files, softmax, mixes, what a state was before.
"""

# B rows, T steps, N all steps of all rows, U distinct words, D one direction, L layers

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bilmo.errors import ConfigError
from bilmo.ids.batch import Batch
from bilmo.ids.chars import Ids
from bilmo.net.cells import Cell
from bilmo.net.config import BiLMConfig, Direction, Precision
from bilmo.net.kernels.int8 import need_int8
from bilmo.net.kernels.recurrence import Steps
from bilmo.net.layers import Layers
from bilmo.net.state import LayerState, State
from bilmo.net.words import CharCNN, WordEncoder, WordTable


class BiLM(nn.Module):
    """Deep forward and backward recurrent stacks over one word encoder.

    >>> layers, state = bilm(batch, state)          # doctest: +SKIP
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.config = config
        self.dropout = 0.0
        """While training: share of each layer's input that is dropped; the skip connection sees what is left."""
        self.words = WordEncoder(config)
        for direction in config.directions:  # forward_stack and backward_stack
            self.add_module(
                f"{direction}_stack", nn.ModuleList(Cell(config.cell, config.width) for _ in range(config.layers))
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Random values to train from, as the old systems drew them."""
        if next(self.parameters()).is_meta:  # there are no values yet, and trying to draw some takes a second
            return
        for module in self.modules():
            if isinstance(module, CharCNN):
                nn.init.uniform_(module.table, -1.0, 1.0)
                for conv in module.convolutions():
                    if module.config.activation == "relu":
                        nn.init.uniform_(conv.weight, -0.05, 0.05)
                    else:
                        nn.init.normal_(conv.weight, std=(conv.weight[0].numel()) ** -0.5)
                    nn.init.zeros_(cast("Tensor", conv.bias))
            elif isinstance(module, WordTable):
                nn.init.normal_(module.weight, std=module.config.width**-0.5)
                if module.config.given:
                    nn.init.normal_(module.marks, std=module.config.width**-0.5)
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=module.in_features**-0.5)
                nn.init.zeros_(module.bias)
            elif isinstance(module, Cell):
                module.reset_parameters()
        for name, parameter in self.named_parameters():
            if name.endswith("carry.bias"):  # a highway begins by letting its input through
                nn.init.constant_(parameter, 2.0)

    def cells(self, direction: Direction) -> list[Cell]:
        """The recurrent layers of a direction, the one next to the words first."""
        return list(cast("Iterable[Cell]", self.get_submodule(f"{direction}_stack")))

    def zero_state(self, rows: int) -> State:
        """The state before any text."""
        return State({d: [cell.zero_state(rows) for cell in self.cells(d)] for d in self.config.directions})

    def forward(self, batch: Batch, state: State) -> tuple[Layers, State]:
        """A batch and the state before it to its layers, boundaries included, and the state after it."""
        return self.in_context(self.words(batch.words), batch.forward, batch.backward, batch.lengths, state)

    def in_context(
        self, words: Tensor, forward: Ids, backward: Ids, lengths: Ids, state: State
    ) -> tuple[Layers, State]:
        """The same from word vectors (U, D) on, wherever they came from."""
        rows = Rows(lengths)
        halves = []
        after: dict[Direction, list[LayerState]] = {}
        for direction in self.config.directions:
            places = forward if direction == "forward" else backward
            x = F.embedding(rows.pack(places).to(words.device), words)  # (N, D); see docs/decisions.md on F.embedding
            outputs, after[direction] = self.stack(direction, x, rows, state.stacks[direction])
            home = rows.home(reverse=direction == "backward").to(words.device)
            halves.append(torch.stack([rows.unpack(out, home) for out in outputs]))  # (L+1, B, T, D)
        values = torch.cat(halves, dim=-1)  # (L+1, B, T, 2D)
        return Layers(values, torch.from_numpy(rows.mask).to(words.device)), State(after)

    def prepare(self, precision: Precision = "float32") -> None:
        """Pack the weights for inference; they must not change any more."""
        if precision == "int8":
            if self.config.cell.kind != "lstm":
                raise ConfigError(f"precision int8 is for an LSTM; the cells of this model are {self.config.cell.kind}")
            need_int8()
        self.words.prepare(precision)
        for direction in self.config.directions:
            for cell in self.cells(direction):
                cell.prepare(precision)

    def stack(
        self,
        direction: Direction,
        x: Tensor,
        rows: Rows,
        state: list[LayerState],
        upto: int | None = None,
        random: torch.Generator | None = None,
    ) -> tuple[list[Tensor], list[LayerState]]:
        """One direction over packed words (N, D): outputs of layers 0 to L, each (N, D), and the state after.

        `upto`: the last layer that anybody asked for; those above it are not computed.
        `random`: where dropout is drawn from; a thread of its own needs one of its own.
        """
        order = torch.from_numpy(rows.order).to(x.device)
        back = torch.argsort(order)
        outputs, after = [x], []
        for cell, before in list(zip(self.cells(direction), state, strict=True))[:upto]:
            into = self.drop(outputs[-1], random)
            out, last = cell(into, rows.steps, tuple(s.index_select(0, order) for s in before))
            # The sum is what the next layer and the reader see; the recurrence itself never sees it.
            # The word itself is never added to the first layer.
            outputs.append(out + into if self.config.skip and len(outputs) > 1 else out)
            after.append(tuple(s.index_select(0, back) for s in last))
        return outputs, after

    def drop(self, x: Tensor, random: torch.Generator | None = None) -> Tensor:
        """While training, a share of the values set to 0 and the others made larger for it."""
        if not self.training or not self.dropout:
            return x
        kept = torch.empty_like(x).bernoulli_(1 - self.dropout, generator=random)
        return x * kept.div_(1 - self.dropout)


@dataclass(frozen=True)
class Rows:
    """Rows of unequal length packed without padding: step 0 of all rows, step 1, ..., the longest row first."""

    lengths: Ids
    """(B,), each 1 or more."""

    @cached_property
    def order(self) -> Ids:
        """(B,): rows by falling length."""
        return np.argsort(-self.lengths, kind="stable")

    @cached_property
    def steps(self) -> Steps:
        """How many rows are still running at each step."""
        return Steps(tuple(int(n) for n in self._running.sum(axis=1)))

    @cached_property
    def mask(self) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
        """(B, T), True on real steps."""
        return np.arange(max(self.lengths)) < self.lengths[:, None]

    @cached_property
    def _running(self) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
        return self.mask[self.order].T  # (T, B sorted)

    def pack(self, places: Ids) -> Tensor:
        """(B, T) to (N,)."""
        return torch.from_numpy(places[self.order].T[self._running])

    def home(self, *, reverse: bool) -> Tensor:
        """(N,): for each packed step, its place in a flat (B * T); reversed rows count from their own end."""
        row, step = self.each
        place = self.lengths[row] - 1 - step if reverse else step
        return torch.from_numpy(row * max(self.lengths) + place)

    @cached_property
    def each(self) -> tuple[Ids, Ids]:
        """(N,) and (N,): the row of each packed value, and its step there."""
        step, rank = np.nonzero(self._running)
        return self.order[rank], step

    def unpack(self, packed: Tensor, home: Tensor) -> Tensor:
        """(N, D) to (B, T, D), zero on padding."""
        shape = (len(self.lengths), int(max(self.lengths)), packed.shape[1])
        flat = packed.new_zeros(shape[0] * shape[1], shape[2])
        return flat.index_copy(0, home, packed).view(shape)


SETTLING = 32
"""Empty sentences after which a state no longer changes to speak of."""


@torch.no_grad()
def settle(bilm: BiLM, empty: Batch) -> State:
    """The state of one row after many empty sentences (`<S> </S>`) from zero: where every sentence may start."""
    state = bilm.zero_state(1)
    words = bilm.words(empty.words)
    for _ in range(SETTLING):
        _, state = bilm.in_context(words, empty.forward, empty.backward, empty.lengths, state)
    return state

"""One recurrent layer of one direction: its parameters, and the arithmetic of one layer with them.

Knows: config, state, kernels. Blind to: words, directions, the stack that a layer belongs to.
"""

# B rows, N steps of all rows, I input width, D output width, H memory cells

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn

from bilmo.net.config import CellConfig, Precision
from bilmo.net.kernels import recurrence
from bilmo.net.kernels.autocast import product_dtype
from bilmo.net.kernels.int8 import Int8Weights
from bilmo.net.kernels.lstm import Clips
from bilmo.net.kernels.packed import PackedWeights, PlainWeights
from bilmo.net.kernels.recurrence import Steps
from bilmo.net.state import LayerState

GATES = {"rnn": 1, "gru": 3, "lstm": 4}


class Cell(nn.Module):
    """A tanh RNN, a GRU or an LSTM; the order of its gates is the one documented in `kernels/recurrence.py`."""

    def __init__(self, config: CellConfig, width: int, *, inputs: int | None = None) -> None:
        """`width` of the outputs, and of the inputs unless `inputs` is given."""
        super().__init__()
        self.config = config
        self.width = width
        rows = GATES[config.kind] * config.cells
        self.input = nn.Parameter(torch.empty(rows, inputs or width))
        self.recur = nn.Parameter(torch.empty(rows, width))
        self.bias = nn.Parameter(torch.empty(rows))
        self.project = nn.Parameter(torch.empty(width, config.cells)) if config.project else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot uniform over [input ; recurrent] as one matrix, as the old systems do; biases 0."""
        if self.input.is_meta:
            return
        bound = math.sqrt(6 / (len(self.input) + self.input.shape[1] + self.width))
        nn.init.uniform_(self.input, -bound, bound)
        nn.init.uniform_(self.recur, -bound, bound)
        nn.init.zeros_(self.bias)
        if self.project is not None:
            nn.init.xavier_uniform_(self.project)

    def zero_state(self, rows: int) -> LayerState:
        """The state of rows that have not read any word yet."""
        widths = (self.width, self.config.cells) if self.config.kind == "lstm" else (self.width,)
        return tuple(self.bias.new_zeros(rows, width) for width in widths)

    def forward(self, x: Tensor, steps: Steps, state: LayerState) -> tuple[Tensor, LayerState]:
        """Packed inputs (N, I) and a state to packed outputs (N, D) and the state after each row's last step."""
        w: Tensor = self.input
        u: Tensor = self.recur
        b: Tensor = self.used_bias()
        p: Tensor | None = self.project
        dtype = product_dtype(x.device)
        if dtype is not None:
            w, u, p = w.to(dtype), u.to(dtype), None if p is None else p.to(dtype)
            if self.config.kind == "lstm":  # only products: a memory that every step adds to needs all its bits
                x, state = x.float(), tuple(part.float() for part in state)
            else:
                x, state, b = x.to(dtype), tuple(part.to(dtype) for part in state), b.to(dtype)
        if self.config.kind != "lstm":
            function = recurrence.RNN if self.config.kind == "rnn" else recurrence.GRU
            out, h = function.apply(x, steps, *state, w, u, b)  # type: ignore[no-untyped-call]
            return out, (h,)
        clips = (self.config.cell_clip, self.config.projection_clip)
        if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, *state, w, u, b, p)):
            out, h, c = recurrence.LSTM.apply(x, steps, *state, w, u, b, p, clips)  # type: ignore[no-untyped-call]
        else:
            out, h, c = recurrence.lstm(x, steps, state, PlainWeights(w, u, b, p), clips)
        return out, (h, c)

    def extra_repr(self) -> str:
        """Kind and sizes, for `repr`."""
        return f"{self.config.kind}, inputs={self.input.shape[1]}, cells={self.config.cells}, width={self.width}"

    def used_bias(self) -> Tensor:
        """The bias as it is used: an LSTM adds a constant to that of its forget gate, which is not stored with it."""
        if self.config.kind != "lstm":
            return self.bias
        i, f, rest = self.bias.split([self.config.cells, self.config.cells, 2 * self.config.cells])
        return torch.cat([i, f + self.config.forget_bias, rest])

    def prepared(self, precision: Precision) -> Cell | PreparedLSTM:
        """A copy for inference; the weights of an LSTM are packed."""
        if self.config.kind != "lstm":
            return copy.deepcopy(self).requires_grad_(False)
        weights = (self.input, self.recur, self.used_bias(), self.project)
        return PreparedLSTM(
            Int8Weights(*weights) if precision == "int8" else PackedWeights(*weights),
            (self.config.cell_clip, self.config.projection_clip),
        )


class PreparedLSTM:
    """An LSTM layer for inference on the CPU, made once from a `Cell`."""

    def __init__(self, weights: PackedWeights | Int8Weights, clips: Clips) -> None:
        self._weights, self._clips = weights, clips

    def __call__(self, x: Tensor, steps: Steps, state: LayerState) -> tuple[Tensor, LayerState]:
        """As `Cell.forward`."""
        out, h, c = recurrence.lstm(x, steps, state, self._weights, self._clips)
        return out, (h, c)

"""One recurrent layer of one direction: its parameters, and what one step does with them.

Knows: config, recurrence, gemm, int8. Blind to: words, directions, the stack it stands in.
"""

# B rows, N all steps of all rows, I input width, D output width, H memory cells

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from bilmo.net.config import CellConfig, Precision
from bilmo.net.kernels import recurrence
from bilmo.net.kernels.int8 import Int8Weights
from bilmo.net.kernels.packed import PlainWeights, PreparedWeights
from bilmo.net.kernels.recurrence import Steps
from bilmo.net.state import LayerState

GATES = {"rnn": 1, "gru": 3, "lstm": 4}


class Cell(nn.Module):
    """A tanh RNN, a GRU or an LSTM; gates are stacked in the order that `recurrence` gives."""

    def __init__(self, config: CellConfig, width: int, *, inputs: int | None = None) -> None:
        """`width` of the outputs, and of the inputs unless that is told."""
        super().__init__()
        self.config = config
        self.width = width
        rows = GATES[config.kind] * config.cells
        self.input = nn.Parameter(torch.empty(rows, inputs or width))
        self.recur = nn.Parameter(torch.empty(rows, width))
        self.bias = nn.Parameter(torch.empty(rows))
        self.project = nn.Parameter(torch.empty(width, config.cells)) if config.project else None
        self._prepared: PreparedWeights | Int8Weights | None = None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot uniform over [input ; recurrent] as one matrix, which is how the old systems began; biases 0."""
        if self.input.is_meta:
            return
        bound = math.sqrt(6 / (len(self.input) + self.input.shape[1] + self.width))
        nn.init.uniform_(self.input, -bound, bound)
        nn.init.uniform_(self.recur, -bound, bound)
        nn.init.zeros_(self.bias)
        if self.project is not None:
            nn.init.xavier_uniform_(self.project)

    def prepare(self, precision: Precision = "float32") -> None:
        """Pack the weights of an LSTM for inference; they must not change any more."""
        if self.config.kind == "lstm":
            weights = (self.input, self.recur, self._bias(), self.project)
            self._prepared = Int8Weights(*weights) if precision == "int8" else PreparedWeights(*weights)

    def _bias(self) -> Tensor:
        """The bias as it is used: the forget gate's is not stored with its constant."""
        i, f, rest = self.bias.split([self.config.cells, self.config.cells, 2 * self.config.cells])
        return torch.cat([i, f + self.config.forget_bias, rest])

    def zero_state(self, rows: int) -> LayerState:
        """What a row remembers before its first word ever."""
        widths = (self.width, self.config.cells) if self.config.kind == "lstm" else (self.width,)
        return tuple(self.bias.new_zeros(rows, width) for width in widths)

    def forward(self, x: Tensor, steps: Steps, state: LayerState) -> tuple[Tensor, LayerState]:
        """Packed inputs (N, I) and a state to packed outputs (N, D) and the state after each row's last step."""
        config = self.config
        w: Tensor = self.input
        u: Tensor = self.recur
        b: Tensor = self._bias() if config.kind == "lstm" else self.bias
        p: Tensor | None = self.project
        half = torch.is_autocast_enabled(x.device.type)
        if half:  # autocast does not look into functions of our own
            kind = torch.get_autocast_dtype(x.device.type)
            x, state = x.to(kind), tuple(part.to(kind) for part in state)
            w, u, b, p = w.to(kind), u.to(kind), b.to(kind), None if p is None else p.to(kind)
        if config.kind == "rnn":
            out, h = recurrence.RNN.apply(x, steps, *state, w, u, b)  # type: ignore[no-untyped-call]
            return out, (h,)
        if config.kind == "gru":
            out, h = recurrence.GRU.apply(x, steps, *state, w, u, b)  # type: ignore[no-untyped-call]
            return out, (h,)
        clips = (config.cell_clip, config.projection_clip)
        if not torch.is_grad_enabled() or not any(t is not None and t.requires_grad for t in (x, *state, w, u, b, p)):
            h, c = state
            ready = PlainWeights(w, u, b, p) if half or self._prepared is None else self._prepared
            out, h, c = recurrence.lstm(x, steps, h, c, ready, *clips)
            return out, (h, c)
        out, h, c = recurrence.LSTM.apply(x, steps, *state, w, u, b, p, *clips)  # type: ignore[no-untyped-call]
        return out, (h, c)

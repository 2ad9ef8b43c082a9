"""The recurrence of a whole layer, forward and backward, for training and for inference.

Rows are sorted, longest first, and packed step by step, so no step computes padding: step t holds the rows
that are still running, which are always the first ones. Each kind of cell is an autograd function: it keeps the
activations of all steps, its backward runs through the steps by hand, and every weight gradient is one product over
all steps.

Knows: torch, lstm, packed, int8. Blind to: parameters, words, directions.
"""

# B rows, N all steps of all rows, I input width, D output width, H memory cells

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from bilmo.net.kernels.int8 import Int8Weights
from bilmo.net.kernels.lstm import Block, Clips, compiled, lstm_steps_back
from bilmo.net.kernels.packed import PackedWeights, PlainWeights


@dataclass(frozen=True)
class Steps:
    """How packed values are divided into steps: `rows[t]` is the number of rows that are still running at step t."""

    rows: tuple[int, ...]

    @cached_property
    def slices(self) -> list[tuple[slice, int]]:
        """(place in the packed values, number of rows) of each step."""
        ends = list(accumulate(self.rows))
        return [(slice(end - n, end), n) for end, n in zip(ends, self.rows, strict=True)]

    def blocks(self, most: int) -> Iterator[tuple[slice, list[int]]]:
        """Groups of steps with at most `most` rows together, or of one step: its place, and the rows of each step."""
        start = stop = 0
        rows: list[int] = []
        for n in self.rows:
            if rows and stop + n - start > most:
                yield slice(start, stop), rows
                start, rows = stop, []
            rows.append(n)
            stop += n
        if rows:
            yield slice(start, stop), rows

    def last(self, values: Tensor) -> Tensor:
        """The values at each row's last step: (N, any) to (B, any)."""
        at = [0] * self.rows[0]
        start = 0
        for n in self.rows:  # a later step overwrites an earlier one
            at[:n] = range(start, start + n)
            start += n
        return values[torch.tensor(at, device=values.device)]

    def shift(self, values: Tensor, first: Tensor) -> Tensor:
        """What each row had one step earlier, `first` before its first step: (N, any) to (N, any)."""
        earlier = [first[: self.rows[0]]]
        start = 0
        for before, n in pairwise(self.rows):
            earlier.append(values[start : start + n])
            start += before
        return torch.cat(earlier)


def _zeros_if_none(gradient: Tensor | None, like: Tensor) -> Tensor:
    return torch.zeros_like(like) if gradient is None else gradient.clone()


class RNN(Function):
    """h = tanh(W x + U h + b)."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, steps: Steps, h0: Tensor, w: Tensor, u: Tensor, b: Tensor
    ) -> tuple[Tensor, Tensor]:
        """(N, I) and the state (B, D) to outputs (N, D) and the state after each row's last step."""
        out = torch.addmm(b, x, w.t())  # (N, D), becomes the outputs in place
        h = h0.clone()
        for place, n in steps.slices:
            out[place].addmm_(h[:n], u.t()).tanh_()
            h[:n] = out[place]
        ctx.steps = steps
        ctx.save_for_backward(x, h0, w, u, out)
        return out, h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor, d_last: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of all inputs."""
        x, h0, w, u, out = ctx.saved_tensors
        d_gates = torch.empty_like(out)
        d_h = _zeros_if_none(d_last, h0)  # (B, D): gradient of the last state of each row
        for place, n in reversed(ctx.steps.slices):
            d = d_out[place] + d_h[:n]
            torch.mul(d, 1 - out[place] ** 2, out=d_gates[place])
            torch.mm(d_gates[place], u, out=d_h[:n])
        before = ctx.steps.shift(out, h0)
        return d_gates @ w, None, d_h, d_gates.t() @ x, d_gates.t() @ before, d_gates.sum(0)


class GRU(Function):
    """h = (1 - z) h + z tanh(W x + U (r h) + b): the reset gate acts before the product. Gate order z, r, new."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, steps: Steps, h0: Tensor, w: Tensor, u: Tensor, b: Tensor
    ) -> tuple[Tensor, Tensor]:
        """(N, I) and the state (B, D) to outputs (N, D) and the state after each row's last step."""
        d = h0.shape[1]
        gates = torch.addmm(b, x, w.t())  # (N, 3D), become activations in place
        out = gates.new_empty(len(x), d)
        h = h0.clone()
        for place, n in steps.slices:
            zr, new = gates[place, : 2 * d], gates[place, 2 * d :]
            zr.addmm_(h[:n], u[: 2 * d].t()).sigmoid_()
            new.addmm_(zr[:, d:] * h[:n], u[2 * d :].t()).tanh_()
            torch.lerp(h[:n], new, zr[:, :d], out=out[place])
            h[:n] = out[place]
        ctx.steps = steps
        ctx.save_for_backward(x, h0, w, u, gates, out)
        return out, h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor, d_last: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of all inputs."""
        x, h0, w, u, gates, out = ctx.saved_tensors
        width = h0.shape[1]
        before = ctx.steps.shift(out, h0)  # (N, D)
        d_gates = torch.empty_like(gates)
        d_h = _zeros_if_none(d_last, h0)
        for place, n in reversed(ctx.steps.slices):
            z, r, new = gates[place].split(width, dim=1)
            h = before[place]
            d = d_out[place] + d_h[:n]
            d_new = d * z * (1 - new**2)
            d_reset = d_new @ u[2 * width :]  # gradient of r * h
            d_gates[place, :width] = d * (new - h) * z * (1 - z)
            d_gates[place, width : 2 * width] = d_reset * h * r * (1 - r)
            d_gates[place, 2 * width :] = d_new
            d_h[:n] = d * (1 - z) + d_reset * r + d_gates[place, : 2 * width] @ u[: 2 * width]
        d_zr, d_new = d_gates[:, : 2 * width], d_gates[:, 2 * width :]
        reset = gates[:, width : 2 * width] * before
        d_u = torch.cat([d_zr.t() @ before, d_new.t() @ reset])
        return d_gates @ w, None, d_h, d_gates.t() @ x, d_u, d_gates.sum(0)


@dataclass
class Kept:
    """What the backward pass of an LSTM needs from every step."""

    gates: Tensor
    """(N, 4H), after their non-linearities; computed in place of the multiplied inputs."""
    memory: Tensor
    """(N, H): c."""
    squashed: Tensor
    """(N, H): tanh c."""
    inner: Tensor
    """(N, H): m."""


BLOCK_GATES = 1 << 19
"""Gates (2 MB of float32) whose inputs are multiplied at once if nothing is kept for a backward pass."""


def lstm(
    x: Tensor,
    steps: Steps,
    state: tuple[Tensor, ...],
    weights: PlainWeights | PackedWeights | Int8Weights,
    clips: Clips,
    kept: Kept | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The forward pass of an LSTM, for training, where `kept` is filled, and for inference.

    (N, I) and the state (B, D), (B, H) to outputs (N, D) and the states after each row's last step.
    """
    h, c = state[0], state[1].clone()
    out = x.new_empty(len(x), h.shape[1])
    fill = [kept.memory, kept.squashed, kept.inner] if kept else []
    for place, rows in steps.blocks(len(x) if kept else max(1, BLOCK_GATES // (4 * c.shape[1]))):
        gates = weights.into(x[place])  # all inputs of the block in one product
        h = weights.steps(Block(gates, rows, h, c, out[place], fill), clips)
        if kept:
            kept.gates = gates
    return out, steps.last(out), c


class LSTM(Function):
    """LSTM with optional projection and clipping.

    The order of the gates is in, forget, out, new, so that one sigmoid call covers the first three gates.
    c = clip(f c + i new);  m = o tanh(c);  h = clip(P m), or m itself without a projection.
    The clipped c and h are what the next step sees.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        steps: Steps,
        h0: Tensor,
        c0: Tensor,
        w: Tensor,
        u: Tensor,
        b: Tensor,
        p: Tensor | None,
        clips: Clips,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(N, I) and the states (B, D), (B, H) to outputs (N, D) and the states after each row's last step."""
        cells = c0.shape[1]
        kept = Kept(x, *(x.new_empty(len(x), cells) for _ in range(3)))
        out, h, c = lstm(x, steps, (h0, c0), PlainWeights(w, u, b, p), clips, kept)
        ctx.steps, ctx.clips = steps, clips
        ctx.save_for_backward(x, h0, c0, w, u, p, kept.gates, kept.memory, kept.squashed, kept.inner, out)
        return out, h, c

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor, d_h_last: Tensor, d_c_last: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of all inputs; clipped values get zero gradient."""
        x, h0, c0, w, u, p, gates, memory, squashed, inner, out = ctx.saved_tensors
        d_gates = torch.empty_like(gates)
        d_projected = torch.empty_like(out)  # gradient of the outputs, 0 where they were clipped
        d_h, d_c = _zeros_if_none(d_h_last, h0), _zeros_if_none(d_c_last, c0)
        kept = (gates, memory, squashed, ctx.steps.shift(memory, c0), out)
        filled = (d_gates, d_projected)
        compiled(lstm_steps_back)(list(ctx.steps.rows), d_out, d_h, d_c, *kept, u, p, *ctx.clips, *filled)
        before = ctx.steps.shift(out, h0)
        dtype = w.dtype  # of the products; everything else is in the dtype of x
        d_p = None if p is None else d_projected.t().to(dtype) @ inner.to(dtype)
        d_products = d_gates.to(dtype)
        d_w, d_u = d_products.t() @ x.to(dtype), d_products.t() @ before.to(dtype)
        d_x = (d_products @ w).to(x.dtype)
        return d_x, None, d_h, d_c, d_w, d_u, d_gates.sum(0), d_p, None

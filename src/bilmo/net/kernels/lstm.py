"""The steps of an LSTM through time, written so that torch can compile them into one call.

One compiled call releases the GIL, so two directions really run side by side, and a step costs no more than its
arithmetic. If torch cannot compile it, the same function runs as plain Python.

Knows: torch. Blind to: where weights come from.
"""

# n rows still running, N all steps of all rows, D output width, H memory cells
# Do not add `from __future__ import annotations`: TorchScript reads the annotations.

import warnings
from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

Result = TypeVar("Result")

Clips = tuple[float | None, float | None]
"""Bounds on the memory and on the projection of an LSTM; None for no bound."""


class Block(NamedTuple):
    """Steps of an LSTM that run in one call: what `lstm_steps` needs besides weights and bounds."""

    gates: Tensor
    """(N, 4H): inputs, already multiplied."""
    rows: list[int]
    """The number of rows of each step."""
    h: Tensor
    """(B, D): outputs before the first step."""
    c: Tensor
    """(B, H): memory before the first step; updated in place."""
    out: Tensor
    """(N, D): filled with the outputs."""
    kept: list[Tensor]
    """Empty, or three tensors (N, H) that are filled for the backward pass."""


def gated(gate: Tensor, c: Tensor, cell_clip: float | None) -> tuple[Tensor, Tensor]:
    """What an LSTM computes between its products in one step: tanh c and o tanh c, (n, H) each.

    gate (n, 4H) becomes activations in place, c (n, H) is updated in place.
    """
    cells = c.size(1)
    # tanh(x) is 2 sigmoid(2 x) - 1, and torch's sigmoid takes a third of the time of its tanh.
    new = gate[:, 3 * cells :].mul_(2)
    gate.sigmoid_()
    new.mul_(2).sub_(1)
    c.mul_(gate[:, cells : 2 * cells]).addcmul_(gate[:, :cells], new)
    if cell_clip is not None:
        c.clamp_(-cell_clip, cell_clip)
    squashed = torch.mul(c, 2).sigmoid_().mul_(2).sub_(1)
    return squashed, squashed * gate[:, 2 * cells : 3 * cells]


def lstm_steps(
    gates: Tensor,
    rows: list[int],
    h: Tensor,
    c: Tensor,
    out: Tensor,
    recur: Tensor,
    packed: bool,
    project: Tensor | None,
    cell_clip: float | None,
    projection_clip: float | None,
    kept: list[Tensor],
) -> Tensor:
    """Run the steps, of `rows[t]` rows each, from h (B, D) and c (B, H); returns the last h.

    gates (N, 4H) holds the multiplied inputs; they become activations in place unless `recur` is packed for oneDNN.
    c is updated in place, outputs are written to out (N, D). recur (D, 4H), project (H, D).
    kept: empty, or three tensors (N, H) that are filled with c, tanh c and o tanh c.
    """
    at = 0
    same = packed or recur.dtype == gates.dtype
    for n in rows:
        here = gates[at : at + n]
        if packed:
            gate = torch.ops.mkldnn._linear_pointwise(h[:n], here, recur, None, "add")
        elif same:
            gate = here.addmm_(h[:n], recur)
        else:  # products in bfloat16; sums, gates and memory in float32
            gate = here.add_(torch.mm(h[:n].to(recur.dtype), recur))
        squashed, m = gated(gate, c[:n], cell_clip)
        if project is None:
            h = m
        else:
            h = torch.mm(m, project) if same else torch.mm(m.to(project.dtype), project).to(m.dtype)
            if projection_clip is not None:
                h.clamp_(-projection_clip, projection_clip)
        out[at : at + n] = h
        if len(kept) > 0:
            kept[0][at : at + n] = c[:n]
            kept[1][at : at + n] = squashed
            kept[2][at : at + n] = m
        at += n
    return h


def lstm_steps_back(
    rows: list[int],
    d_out: Tensor,
    d_h: Tensor,
    d_c: Tensor,
    gates: Tensor,
    memory: Tensor,
    squashed: Tensor,
    c_before: Tensor,
    out: Tensor,
    recur: Tensor,
    project: Tensor | None,
    cell_clip: float | None,
    projection_clip: float | None,
    d_gates: Tensor,
    d_projected: Tensor,
) -> None:
    """The backward pass over the same steps, from the last to the first, given the gradient of the outputs (N, D).

    d_h (B, D) and d_c (B, H) hold the gradient of the last state of each row, and in the end that of the first.
    d_gates (N, 4H) and d_projected (N, D) are filled. recur (4H, D), project (D, H). Clipped values get zero gradient.
    """
    cells = d_c.size(1)
    same = recur.dtype == gates.dtype
    at = gates.size(0)
    for k in range(len(rows)):
        n = rows[len(rows) - 1 - k]
        at -= n
        d = d_projected[at : at + n]
        torch.add(d_out[at : at + n], d_h[:n], out=d)
        if project is None:
            d_m = d
        else:
            if projection_clip is not None:
                d.copy_(torch.ops.aten.hardtanh_backward(d, out[at : at + n], -projection_clip, projection_clip))
            d_m = torch.mm(d, project) if same else torch.mm(d.to(project.dtype), project).to(d.dtype)  # (n, H)
        gate, d_gate = gates[at : at + n], d_gates[at : at + n]
        i, f = gate[:, :cells], gate[:, cells : 2 * cells]
        o, new = gate[:, 2 * cells : 3 * cells], gate[:, 3 * cells :]
        tanh_c = squashed[at : at + n]
        d_now = torch.ops.aten.tanh_backward(d_m * o, tanh_c).add_(d_c[:n])
        if cell_clip is not None:
            d_now = torch.ops.aten.hardtanh_backward(d_now, memory[at : at + n], -cell_clip, cell_clip)
        torch.mul(d_now, new, out=d_gate[:, :cells])
        torch.mul(d_now, c_before[at : at + n], out=d_gate[:, cells : 2 * cells])
        torch.mul(d_m, tanh_c, out=d_gate[:, 2 * cells : 3 * cells])
        d_sigmoids = torch.ops.aten.sigmoid_backward(d_gate[:, : 3 * cells], gate[:, : 3 * cells])
        d_gate[:, : 3 * cells] = d_sigmoids
        d_gate[:, 3 * cells :] = torch.ops.aten.tanh_backward(d_now * i, new)
        torch.mul(d_now, f, out=d_c[:n])
        if same:
            torch.mm(d_gate, recur, out=d_h[:n])
        else:
            d_h[:n] = torch.mm(d_gate.to(recur.dtype), recur)


@cache
def compiled(steps: Callable[..., Result]) -> Callable[..., Result]:
    """A function of steps, compiled if torch can do so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this compiler is old; no newer one compiles a loop of any length
        try:
            function: Callable[..., Result] = torch.jit.script(steps)
        except Exception:  # a torch without the compiler, or without the packed product
            return steps
    return function

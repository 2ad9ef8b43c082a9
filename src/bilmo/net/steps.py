"""The steps of an LSTM through time, written so that torch can compile them into one call.

As one call the loop holds no Python lock, so two directions really run side by side, and a step costs what its
arithmetic costs. Where torch does not compile it, the same function runs as plain Python.

Knows: torch. Blind to: where weights come from and who asks.
"""

# n rows still running, N all steps of all rows, D output width, H memory cells
# No postponed annotations here: the compiler reads them.

import warnings
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor


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
    """Run over `rows`, the number of rows at each step, from h (B, D) and c (B, H); the last h comes back.

    gates (N, 4H): inputs already multiplied; become activations in place unless `recur` is packed for oneDNN.
    c is moved on in place, outputs go to out (N, D). recur (D, 4H), project (H, D).
    kept: empty, or three tensors (N, H) that are filled with c, tanh c, and o tanh c.
    """
    cells = c.size(1)
    at = 0
    for n in rows:
        here = gates[at : at + n]
        if packed:
            gate = torch.ops.mkldnn._linear_pointwise(h[:n], here, recur, None, "add")
        else:
            gate = here.addmm_(h[:n], recur)
        sigmoids = gate[:, : 3 * cells].sigmoid_()
        new = gate[:, 3 * cells :].tanh_()
        now = c[:n].mul_(sigmoids[:, cells : 2 * cells]).addcmul_(sigmoids[:, :cells], new)
        if cell_clip is not None:
            now.clamp_(-cell_clip, cell_clip)
        squashed = torch.tanh(now)
        m = squashed * sigmoids[:, 2 * cells :]
        if project is None:
            h = m
        else:
            h = torch.mm(m, project)
            if projection_clip is not None:
                h.clamp_(-projection_clip, projection_clip)
        out[at : at + n] = h
        if len(kept) > 0:
            kept[0][at : at + n] = now
            kept[1][at : at + n] = squashed
            kept[2][at : at + n] = m
        at += n
    return h


@cache
def compiled() -> Callable[..., Tensor]:
    """`lstm_steps`, compiled where torch can."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this compiler is old; nothing newer compiles a loop of any length
        try:
            function: Callable[..., Tensor] = torch.jit.script(lstm_steps)
        except Exception:  # a torch without the compiler, or without the packed product
            return lstm_steps
    return function

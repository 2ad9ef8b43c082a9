"""Convolutions over characters for training: the largest output of each filter over all places, and its gradient.

The output of a filter is a sum of what each character of the window contributes at its place. The contributions are
computed once for the distinct characters of a batch, so an output costs a few additions of rows. Only the largest
output has a gradient, so backward touches one window per filter and word; a general convolution goes through all.

Knows: torch. Blind to: words, layers.
"""

# U distinct words, C characters, A distinct characters, P places of a window, w its width, E character width,
# n filters of one width, F filters

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.amp import custom_bwd, custom_fwd
from torch.autograd import Function
from torch.autograd.function import once_differentiable

CHUNK_ACTIVATIONS = 1 << 22
"""Outputs of filters in memory at a time (16 MB of float32)."""
CHUNK_WORDS = 128
"""Maximum number of words, of similar length, that are computed together."""


class MaxOverPositions(Function):
    """max over places of (convolution + bias), for convolutions of several widths over the same characters."""

    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
    def forward(ctx: Any, chars: Tensor, table: Tensor, *filters: Tensor) -> Tensor:
        """(U, C) ids, (R, E), and of each convolution weight (n, E, w) and bias (n,), to (U, F)."""
        used, chars = torch.unique(chars, return_inverse=True)  # (A,), (U, C)
        # Length of each word without its padding, which repeats one character; all windows beyond it are equal.
        lengths = ((chars != chars[:, -1:]) * torch.arange(1, chars.shape[1] + 1, device=chars.device)).amax(dim=1)
        lengths, order = lengths.sort()
        chars = chars[order]
        first = torch.arange(len(chars), device=chars.device) * chars.shape[1]  # where each word begins
        vectors = table.index_select(0, used)  # (A, E)
        best, begins = [], []
        for weight, bias in zip(filters[::2], filters[1::2], strict=True):
            number, _, width = weight.shape
            adds = torch.matmul(vectors, weight.permute(2, 1, 0)).flatten(0, 1)  # (w * A, n)
            windows = chars.unfold(1, width, 1) + len(used) * torch.arange(width, device=chars.device)  # (U, P, w)
            some = max(1, min(CHUNK_WORDS, CHUNK_ACTIVATIONS // (number * windows.shape[1])))
            found = []
            for piece, length in zip(windows.split(some), lengths.split(some), strict=True):
                seen = piece[:, : int(length[-1]) + 1]
                outputs = F.embedding_bag(seen.flatten(0, 1), adds, mode="sum")  # sums of rows of (w * A, n)
                found.append(_largest(outputs.view(*seen.shape[:2], number)))
            best.append(torch.cat([values for values, _ in found]).add_(bias))  # (U, n)
            places = torch.cat([places for _, places in found]).t()
            begins.append(torch.add(first, places.contiguous().long()).flatten())  # (n * U,)
        ctx.begins = begins
        ctx.save_for_backward(chars, order, used, vectors, table, *filters)
        return torch.cat(best, dim=1)[order.argsort()]

    @staticmethod
    @custom_bwd(device_type="cpu")  # type: ignore[untyped-decorator]
    @once_differentiable
    def backward(ctx: Any, d_best: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of the table and of each convolution's weight and bias."""
        chars, order, used, vectors, table, *filters = ctx.saved_tensors
        d_best = d_best[order].t().contiguous()  # (F, U)
        d_vectors = torch.zeros_like(vectors)
        d_filters: list[Tensor] = []
        at = 0
        for weight, begins in zip(filters[::2], ctx.begins, strict=True):
            number, _, width = weight.shape
            d = d_best[at : at + number]
            d_adds = d.new_zeros(width, number, len(used))
            for k in range(width):  # the character at place k of the window that won
                d_adds[k].scatter_add_(1, chars.view(-1)[k:].index_select(0, begins).view_as(d), d)
            d_vectors += torch.matmul(d_adds.transpose(1, 2), weight.permute(2, 0, 1)).sum(dim=0)
            d_filters += [torch.matmul(d_adds, vectors).permute(1, 2, 0), d.sum(dim=1)]
            at += number
        return None, torch.zeros_like(table).index_copy_(0, used, d_vectors), *d_filters


def _largest(outputs: Tensor) -> tuple[Tensor, Tensor]:
    """(U, P, n) to the largest over all places, and the first place that has it, (U, n) each; `outputs` is overwritten.

    torch.max with indices takes six times as long.
    """
    places = outputs.shape[1]
    best = outputs.amax(dim=1)
    countdown = torch.arange(places, 0, -1, dtype=outputs.dtype, device=outputs.device)[:, None]
    first = places - outputs.eq_(best[:, None]).mul_(countdown).amax(dim=1)
    return best, first.clamp_(max=places - 1)  # a NaN equals nothing

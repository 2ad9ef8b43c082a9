"""Convolutions over characters as training wants them: the largest answer of each filter, and its gradient.

A filter's answer is a sum: what each character of the window adds at its place. That is computed once for the distinct
characters of a batch, and an answer costs a few additions of rows. Only the largest answer of a filter has a gradient,
so the way back touches one window a filter and word, where a general convolution goes through all of them.

Knows: torch. Blind to: words, layers.
"""

# U distinct words, C characters, A distinct characters, P places of a window, w its width, E character width,
# n filters of one width, F filters

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.amp import custom_bwd, custom_fwd
from torch.autograd import Function
from torch.autograd.function import once_differentiable

AT_ONCE = 1 << 22
"""Answers of filters held at a time (16 MB of float32)."""


class LargestAnswers(Function):
    """max over places of (convolution + bias), for convolutions of several widths over the same characters."""

    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
    def forward(ctx: Any, chars: Tensor, table: Tensor, *filters: Tensor) -> Tensor:
        """(U, C) ids, (R, E), and of each convolution weight (n, E, w) and bias (n,), to (U, F)."""
        used, chars = torch.unique(chars, return_inverse=True)  # (A,), (U, C)
        vectors = table.index_select(0, used)  # (A, E)
        best, places = [], []
        for weight, bias in _pairs(filters):
            number, _, width = weight.shape
            adds = torch.matmul(vectors, weight.permute(2, 1, 0)).flatten(0, 1)  # (w * A, n)
            windows = chars.unfold(1, width, 1) + len(used) * torch.arange(width)  # (U, P, w)
            some = windows.split(max(1, AT_ONCE // (number * windows.shape[1])))
            found = [_answers(piece, adds).max(dim=1) for piece in some]
            best.append(torch.cat([values for values, _ in found]).add_(bias))
            places.append(torch.cat([at for _, at in found]))  # (U, n)
        ctx.places = places
        ctx.save_for_backward(chars, used, vectors, table, *filters)
        return torch.cat(best, dim=1)

    @staticmethod
    @custom_bwd(device_type="cpu")  # type: ignore[untyped-decorator]
    @once_differentiable
    def backward(ctx: Any, d_best: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of the table and of each convolution's weight and bias."""
        chars, used, vectors, table, *filters = ctx.saved_tensors
        d_vectors = torch.zeros_like(vectors)
        d_filters: list[Tensor] = []
        at = 0
        for (weight, _), places in zip(_pairs(filters), ctx.places, strict=True):
            number, _, width = weight.shape
            d = d_best[:, at : at + number]
            d_adds = d.new_zeros(width, len(used), number)
            for k in range(width):
                d_adds[k].scatter_add_(0, chars.gather(1, places + k), d)
            d_vectors += torch.matmul(d_adds, weight.permute(2, 0, 1)).sum(dim=0)
            d_filters += [torch.matmul(vectors.t(), d_adds).permute(2, 1, 0), d.sum(dim=0)]
            at += number
        return None, torch.zeros_like(table).index_copy_(0, used, d_vectors), *d_filters


def _pairs(filters: tuple[Tensor, ...] | list[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """(weight, bias) of each convolution."""
    return zip(filters[::2], filters[1::2], strict=True)


def _answers(windows: Tensor, adds: Tensor) -> Tensor:
    """(U, P, w) rows of (w * A, n) to their sums (U, P, n)."""
    return F.embedding_bag(windows.flatten(0, 1), adds, mode="sum").view(*windows.shape[:2], adds.shape[1])

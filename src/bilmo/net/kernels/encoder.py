"""Parts of the word encoder prepared for inference: tables instead of convolutions, packed highways; float32 or int8.

Knows: packed, int8, threads. Blind to: the cache of words, sentences.
"""

# U distinct words, C characters, P places of a window, E character width, F filters, R rows of the character table

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bilmo.net.config import Precision
from bilmo.net.kernels.int8 import Int8Linear
from bilmo.net.kernels.packed import PackedLinear
from bilmo.net.kernels.threads import side_by_side

CHUNK_ACTIVATIONS = 1 << 18
"""Outputs of filters in memory at a time (1 MB of float32), which fit the cache of the processor."""

Linear = PackedLinear | Int8Linear


def linear(weight: Tensor, bias: Tensor, precision: Precision) -> Linear:
    """A linear map with weights (O, I), copied and packed."""
    return Int8Linear(weight, bias) if precision == "int8" else PackedLinear(weight, bias)


class Tables:
    """Convolutions over a small set of characters: what each of them contributes at each place, computed once.

    A word then takes a few row additions and no matrix product.
    """

    def __init__(self, table: Tensor, convolutions: Sequence[nn.Conv1d]) -> None:
        """(R, E) and one convolution for each width."""
        rows, self._filters = len(table), sum(conv.out_channels for conv in convolutions)
        self._widest = max(conv.kernel_size[0] for conv in convolutions)
        self._beyond = rows  # stands for no character: a window that reaches beyond the word is never the largest
        parts = table.new_zeros(self._widest, rows + 1, self._filters)
        at = 0
        for conv in convolutions:
            ours = slice(at, at + conv.out_channels)
            parts[: conv.kernel_size[0], :rows, ours] = torch.einsum("re,nek->krn", table, conv.weight)
            parts[: conv.kernel_size[0], rows, ours] = -torch.inf
            at = ours.stop
        self._parts = parts.flatten(0, 1)  # (widest * (R + 1), F)
        self._first = torch.arange(self._widest, device="cpu") * (rows + 1)
        self._bias = torch.cat([_bias(conv) for conv in convolutions])

    def __call__(self, chars: Tensor) -> Tensor:
        """(U, C) ids to (U, F): the largest output of each filter."""
        padded = F.pad(chars, (0, self._widest - 1), value=self._beyond)
        windows = padded.unfold(1, self._widest, 1) + self._first  # (U, C, widest)
        best = _largest(windows, self._filters, lambda some: F.embedding_bag(some, self._parts, mode="sum"))
        return best + self._bias


class Int8Convolutions:
    """Convolutions over any number of characters as products in eight bits."""

    def __init__(self, table: Tensor, convolutions: Sequence[nn.Conv1d]) -> None:
        self._table = table.detach().clone()
        self._products = [
            (conv.kernel_size[0], conv.out_channels, Int8Linear(conv.weight.flatten(1), _bias(conv)))
            for conv in convolutions
        ]

    def __call__(self, chars: Tensor) -> Tensor:
        """(U, C) ids to (U, F): the largest output of each filter."""
        embedded = F.embedding(chars, self._table)  # (U, C, E)
        best = [_largest(embedded.unfold(1, width, 1), number, output) for width, number, output in self._products]
        return torch.cat(best, dim=1)


def _largest(windows: Tensor, filters: int, output: Callable[[Tensor], Tensor]) -> Tensor:
    """(U, P, any) to (U, F): the largest output of each filter over all places, a bounded number of places at a time.

    `output` maps windows (n, any) to (n, F).
    """
    words, places = windows.shape[:2]
    best = []
    for some in windows.split(max(1, CHUNK_ACTIVATIONS // (filters * places))):
        pieces = some.split(max(1, CHUNK_ACTIVATIONS // (filters * len(some))), dim=1)  # several for a long word
        outputs = [output(p.reshape(p.shape[0] * p.shape[1], -1)).view(*p.shape[:2], -1).amax(dim=1) for p in pieces]
        best.append(outputs[0] if len(outputs) == 1 else torch.stack(outputs).amax(dim=0))
    return torch.cat(best) if words else windows.new_empty(0, filters, dtype=torch.float32)


class PreparedHighway:
    """A highway whose two products are joined, then divided into two halves of the outputs that run side by side.

    For a few words most time is spent on reading the weights; so each weight is read once.
    """

    def __init__(self, transform: nn.Linear, carry: nn.Linear, precision: Precision) -> None:
        width = transform.out_features
        self._halves = [slice(0, width // 2), slice(width // 2, width)] if width > 1 else [slice(0, 1)]
        self._products = [
            linear(
                torch.cat([carry.weight[half], transform.weight[half]]),
                torch.cat([carry.bias[half], transform.bias[half]]),
                precision,
            )
            for half in self._halves
        ]

    def __call__(self, x: Tensor) -> Tensor:
        """(U, F) to (U, F)."""
        return torch.cat(side_by_side([partial(self._half, x, k) for k in range(len(self._halves))]), dim=1)

    def _half(self, x: Tensor, k: int) -> Tensor:
        carry, new = self._products[k](x).chunk(2, dim=1)
        return torch.lerp(new.relu_(), x[:, self._halves[k]], carry.sigmoid_())


def _bias(conv: nn.Conv1d) -> Tensor:
    assert conv.bias is not None
    return conv.bias.detach()

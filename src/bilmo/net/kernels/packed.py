"""Weights of an LSTM prepared for inference: packed, as fast as this machine's libraries allow.

With `steps` and `int8`, the only place that knows private operators of torch. Where they are missing, plain products
stand in.

Knows: torch, int8. Blind to: steps, layers, words.
"""

# n rows, I inputs, D outputs of a layer, H cells

from __future__ import annotations

import os
from functools import cache

import torch
from torch import Tensor

from bilmo.net.kernels.int8 import Int8Weights

# oneDNN, and torch in front of it, each keep the code they made for the last 1,024 shapes. Every number of rows is a
# shape: with text of any kind that came to 700 MB. The last 32 serve as well. Both look once, when first used.
for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
    os.environ.setdefault(name, "32")

FEW = 2
"""Rows up to which a product is limited by reading the weights, and a plain matrix is read fastest."""
HINT = 64
"""Rows that weights are packed for; any other number works as well."""


class PackedLinear:
    """x @ w.T + b for weights that do not change any more."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        """(O, I) and (O,)."""
        self._weight, self._bias = weight.detach(), bias.detach()
        self._packed = _pack(self._weight) if _has_packing() else None

    def __call__(self, x: Tensor) -> Tensor:
        """(n, I) to (n, O)."""
        if self._packed is None:
            return torch.nn.functional.linear(x, self._weight, self._bias)
        return _linear(x, self._packed, self._bias)


class PlainWeights:
    """The weights of an LSTM as they are; what training uses."""

    def __init__(self, into: Tensor, recur: Tensor, bias: Tensor, project: Tensor | None) -> None:
        """(4H, I), (4H, D), (4H,), (D, H)."""
        self._into, self._bias, self._recur = into, bias, recur
        self.project = None if project is None else project.t()

    def into(self, x: Tensor) -> Tensor:
        """(n, I) to (n, 4H), bias included."""
        return torch.addmm(self._bias, x, self._into.t())

    def recur(self, rows: int) -> tuple[Tensor, bool]:
        """The recurrent weights for so many rows, and whether they are packed."""
        return self._recur.t(), False


class PreparedWeights:
    """The same, made once for weights that do not change any more."""

    def __init__(self, into: Tensor, recur: Tensor, bias: Tensor, project: Tensor | None) -> None:
        """(4H, I), (4H, D), (4H,), (D, H)."""
        self.into = PackedLinear(into, bias)
        self._packed = _pack(recur.detach()) if _has_packing() else None
        self._turned = recur.detach().t().contiguous()
        self.project = None if project is None else project.detach().t().contiguous()

    def recur(self, rows: int) -> tuple[Tensor, bool]:
        """The recurrent weights for so many rows, and whether they are packed."""
        return (self._turned, False) if self._packed is None or rows <= FEW else (self._packed, True)


LstmWeights = PlainWeights | PreparedWeights | Int8Weights


@cache
def _has_packing() -> bool:
    """Whether torch's oneDNN operators are there and give the right numbers on this machine."""
    try:
        x, weight, plus = torch.randn(5, 8), torch.randn(16, 8), torch.randn(5, 16)
        packed = _pack(weight)
        expected = x @ weight.t()
        added = torch.ops.mkldnn._linear_pointwise.binary(x, plus, packed, None, "add")
        return torch.allclose(_linear(x, packed, None), expected, atol=1e-4) and torch.allclose(
            added, expected + plus, atol=1e-4
        )
    except (AttributeError, RuntimeError, NotImplementedError, TypeError):
        return False


def _pack(weight: Tensor) -> Tensor:
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), HINT)
    return packed


def _linear(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    out: Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
    return out

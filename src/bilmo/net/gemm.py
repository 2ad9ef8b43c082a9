"""Weights prepared for inference: x @ w.T, as fast as this machine's libraries allow.

The only place that knows private operators of torch. Where they are missing, plain products stand in for them.

Knows: torch. Blind to: layers, cells, words.
"""

# n rows, I inputs, O outputs

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

FEW = 2
"""Rows up to which a product is limited by reading the weights, and a plain transposed matrix is read fastest."""
HINT = 64
"""Rows that weights are packed for; any other number works as well."""


class Product:
    """x @ w.T + b. Made once for weights that do not change any more."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        """(O, I) and (O,)."""
        self._weight, self._bias = weight.detach(), None if bias is None else bias.detach()
        self._packed = _pack(self._weight) if _has_packing() else None
        self._turned: Tensor | None = None

    def __call__(self, x: Tensor, plus: Tensor | None = None) -> Tensor:
        """(n, I) to (n, O); `plus` (n, O) is added."""
        if len(x) <= FEW:
            turned = self._few()
            if plus is not None:
                return torch.addmm(plus, x, turned)
            return x @ turned if self._bias is None else torch.addmm(self._bias, x, turned)
        if self._packed is None:
            out = F.linear(x, self._weight, self._bias)
            return out if plus is None else out.add_(plus)
        if plus is None:
            return _linear(x, self._packed, self._bias)
        return _linear_plus(x, plus, self._packed, self._bias)

    def _few(self) -> Tensor:
        if self._turned is None:
            self._turned = self._weight.t().contiguous()
        return self._turned


@cache
def _has_packing() -> bool:
    """Whether torch's oneDNN operators are there and give the right numbers on this machine."""
    try:
        x, weight, plus = torch.randn(5, 8), torch.randn(16, 8), torch.randn(5, 16)
        packed = _pack(weight)
        expected = x @ weight.t()
        return torch.allclose(_linear(x, packed, None), expected, atol=1e-4) and torch.allclose(
            _linear_plus(x, plus, packed, None), expected + plus, atol=1e-4
        )
    except (AttributeError, RuntimeError, NotImplementedError, TypeError):
        return False


def _pack(weight: Tensor) -> Tensor:
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), HINT)
    return packed


def _linear(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    out: Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
    return out


def _linear_plus(x: Tensor, plus: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    out: Tensor = torch.ops.mkldnn._linear_pointwise.binary(x, plus, packed, bias, "add")
    return out

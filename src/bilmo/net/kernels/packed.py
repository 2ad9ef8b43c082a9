"""The weights of an LSTM, as training uses them and packed for inference, as fast as this machine's libraries allow.

Packed weights are for the CPU. With `lstm.py` and `int8.py`, this is the only place that knows private operators of
torch; where they are missing, plain products replace them.

oneDNN, and torch in front of it, each keep the code that they generated for the last 1,024 shapes, and every number
of rows is a shape: with text of all kinds that came to 700 MB. ONEDNN_PRIMITIVE_CACHE_CAPACITY=32 and
LRU_CACHE_CAPACITY=32 in the environment bound it. They are read once, at the first product; the command line sets them.

Knows: torch, lstm. Blind to: layers, words.
"""

# n rows, I inputs, O outputs, D outputs of a layer, H cells

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from bilmo.net.kernels.lstm import Block, Clips, compiled, lstm_steps

PLAIN_ROWS = 2
"""Rows up to which a product is limited by reading the weights, and a plain matrix is read fastest."""
HINT = 64
"""Rows that weights are packed for; any other number works as well."""


class PackedLinear:
    """x @ w.T + b for fixed weights."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        """(O, I) and (O,); both are copied."""
        self._bias = bias.detach().clone()
        self._packed = _pack(weight) if _has_packing() else None
        self._plain = None if self._packed is not None else weight.detach().clone()

    def __call__(self, x: Tensor) -> Tensor:
        """(n, I) to (n, O)."""
        if self._plain is not None:
            return torch.nn.functional.linear(x, self._plain, self._bias)
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x, self._packed, self._bias, "none", [], "")
        return out


class PlainWeights:
    """The weights of an LSTM as they are, for training and for weights that may still change."""

    def __init__(self, into: Tensor, recur: Tensor, bias: Tensor, project: Tensor | None) -> None:
        """(4H, I), (4H, D), (4H,), (D, H)."""
        self._into, self._bias, self._recur = into, bias, recur
        self._project = None if project is None else project.t()

    def into(self, x: Tensor) -> Tensor:
        """(n, I) to (n, 4H), bias included."""
        if self._into.dtype == x.dtype:
            return torch.addmm(self._bias, x, self._into.t())
        return torch.mm(x.to(self._into.dtype), self._into.t()).to(x.dtype).add_(self._bias)

    def steps(self, block: Block, clips: Clips) -> Tensor:
        """Run `lstm_steps`; returns the last outputs."""
        gates, rows, h, c, out, kept = block
        recur = self._recur.t()
        last: Tensor = compiled(lstm_steps)(gates, rows, h, c, out, recur, False, self._project, *clips, kept)
        return last


class PackedWeights:
    """The same for inference, copied and packed once."""

    def __init__(self, into: Tensor, recur: Tensor, bias: Tensor, project: Tensor | None) -> None:
        """(4H, I), (4H, D), (4H,), (D, H)."""
        self.into = PackedLinear(into, bias)
        self._packed = _pack(recur) if _has_packing() else None
        self._turned = recur.detach().t().clone(memory_format=torch.contiguous_format)
        self._project = None if project is None else project.detach().t().clone(memory_format=torch.contiguous_format)
        self._run = compiled(lstm_steps)

    def steps(self, block: Block, clips: Clips) -> Tensor:
        """Run `lstm_steps`; returns the last outputs."""
        gates, rows, h, c, out, kept = block
        packed = self._packed is not None and rows[0] > PLAIN_ROWS
        recur = self._packed if packed else self._turned
        last: Tensor = self._run(gates, rows, h, c, out, recur, packed, self._project, *clips, kept)
        return last


@cache
def _has_packing() -> bool:
    """Whether torch has the oneDNN operators and they give the right numbers on this machine."""
    try:
        random = torch.Generator("cpu").manual_seed(0)  # loading a model must not change torch's own random state
        sizes = ((5, 8), (16, 8), (5, 16))
        x, weight, plus = (torch.randn(s, generator=random, dtype=torch.float32, device="cpu") for s in sizes)
        packed = _pack(weight)
        expected = x @ weight.t()
        product = torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")
        added = torch.ops.mkldnn._linear_pointwise.binary(x, plus, packed, None, "add")
        return torch.allclose(product, expected, atol=1e-4) and torch.allclose(added, expected + plus, atol=1e-4)
    except (AttributeError, RuntimeError, NotImplementedError, TypeError):
        return False


def _pack(weight: Tensor) -> Tensor:
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), HINT)
    return packed

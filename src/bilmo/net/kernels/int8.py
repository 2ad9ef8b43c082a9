"""int8 matrix products, twice as fast as in float32, and the steps of an LSTM with them.

Every row of an input has its own scale, so a sentence never changes the vectors of another. The sums are integers, so
they do not depend on the number of rows multiplied together either; in a recurrence, rounding would grow from step to
step. Inputs have seven bits: AVX2 adds two products in sixteen bits, which eight bits times eight would silently
overflow.

Knows: torch, lstm. Blind to: where weights come from.
"""

# n rows still running, N all steps of all rows, I inputs, O outputs, D output width, H memory cells
# Do not add `from __future__ import annotations`: TorchScript reads the annotations.

import warnings
from functools import cache
from typing import Any

import torch
from torch import Tensor

from bilmo.errors import ConfigError
from bilmo.net.kernels.lstm import Block, Clips, compiled, gated


def int8_matmul(x: Tensor, weight: torch.classes.quantized.LinearPackedParamsBase) -> tuple[Tensor, Tensor]:  # type: ignore[name-defined]
    """(n, I) to (n, O), each row divided by its largest value, and those values (n, 1).

    Inputs become integers from -63 to 63, shifted by 64: the largest sum of two products, 2 * 127 * 127, fits into
    sixteen bits.
    """
    largest = x.abs().amax(1, keepdim=True).clamp_min_(1e-30)
    product = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(x / largest, 1 / 63, 64, weight)
    return product, largest


def int8_matmul_fine(x: Tensor, weight: torch.classes.quantized.LinearPackedParamsBase) -> Tensor:  # type: ignore[name-defined]
    """(n, I) to (n, O) with inputs of thirteen bits: the remainders of rounding are multiplied as well.

    For products whose result is a vector. Before a gate, which saturates, seven bits are enough.
    """
    largest = x.abs().amax(1, keepdim=True).clamp_min_(1e-30)
    exact = (x / largest).mul_(63)
    whole = exact.round()
    both = torch.cat([whole / 63, exact.sub_(whole).mul_(2)])  # a remainder is at most a half
    product: Tensor = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(both, 1 / 63, 64, weight)
    n = x.size(0)
    return product[:n].add_(product[n:], alpha=1 / 126).mul_(largest)


def lstm_steps_int8(
    gates: Tensor,
    rows: list[int],
    h: Tensor,
    c: Tensor,
    out: Tensor,
    recur: torch.classes.quantized.LinearPackedParamsBase,  # type: ignore[name-defined]
    project: list[torch.classes.quantized.LinearPackedParamsBase],  # type: ignore[name-defined]
    cell_clip: float | None,
    projection_clip: float | None,
) -> Tensor:
    """`lstm.lstm_steps` for inference only. `project` holds one weight, or none without a projection."""
    at = 0
    for n in rows:
        product, largest = int8_matmul(h[:n], recur)
        gate = gates[at : at + n].addcmul_(product, largest)
        _, h = gated(gate, c[:n], cell_clip)
        if len(project) > 0:
            h = int8_matmul_fine(h, project[0])
            if projection_clip is not None:
                h.clamp_(-projection_clip, projection_clip)
        out[at : at + n] = h
        at += n
    return h


class Int8Linear:
    """x @ w.T + b by `int8_matmul_fine`."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        """(O, I) and (O,)."""
        self._weight, self._bias = _pack(weight), bias.detach().clone()

    def __call__(self, x: Tensor) -> Tensor:
        """(n, I) to (n, O)."""
        return int8_matmul_fine(x, self._weight).add_(self._bias)


class Int8Weights:
    """The weights of an LSTM, copied; `packed.PackedWeights` in eight bits."""

    def __init__(self, into: Tensor, recur: Tensor, bias: Tensor, project: Tensor | None) -> None:
        """(4H, I), (4H, D), (4H,), (D, H)."""
        self._into, self._bias = _pack(into), bias.detach().clone()
        self._recur = _pack(recur)
        self._project = [] if project is None else [_pack(project)]

    def into(self, x: Tensor) -> Tensor:
        """(n, I) to (n, 4H), bias included."""
        product, largest = int8_matmul(x, self._into)
        return torch.addcmul(self._bias, product, largest)

    def steps(self, block: Block, clips: Clips) -> Tensor:
        """Run `lstm_steps_int8`; returns the last outputs. Nothing is kept: these weights are not trained."""
        gates, rows, h, c, out, _ = block
        last: Tensor = compiled(lstm_steps_int8)(gates, rows, h, c, out, self._recur, self._project, *clips)
        return last


def need_int8() -> None:
    """Check that this torch multiplies in eight bits, and correctly."""
    if not _has_int8():
        raise ConfigError(
            f"precision int8 needs operators (FBGEMM) that torch {torch.__version__} does not have on this machine. "
            "Use precision float32."
        )


@cache
def _has_int8() -> bool:
    try:
        x = torch.ones(2, 64, dtype=torch.float32, device="cpu")  # the largest possible values, which might overflow
        weight = torch.ones(8, 64, dtype=torch.float32, device="cpu")
        x[1] = torch.linspace(-0.01, 0.01, 64, dtype=torch.float32, device="cpu")
        product, largest = int8_matmul(x, _pack(weight))
        return torch.allclose(product * largest, x @ weight.t(), atol=2e-3)
    except (AttributeError, RuntimeError, NotImplementedError, TypeError):
        return False


def _pack(weight: Tensor) -> Any:
    """(O, I), each row with its own scale."""
    weight = weight.detach().float()
    scales = (weight.abs().amax(1) / 127).clamp_min(1e-30).double()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch will drop such tensors; `need_int8` detects it
        zeros = torch.zeros_like(scales, dtype=torch.long)
        whole = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        return torch.ops.quantized.linear_prepack(whole, None)

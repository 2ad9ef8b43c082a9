"""What training makes small: minus the log-probability of each word, by the full softmax or a sample of it.

Knows: torch, Softmax. Blind to: text, networks.
"""

# N positions, V words, D one direction, S sampled words

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from bilmo.net.softmax import Softmax

AT_ONCE = 1 << 22
"""Logits held at a time (16 MB of float32), so that they stay near the processor."""


class FullSoftmax(Function):
    """Sum over positions of minus log p(target), over the whole vocabulary, a piece of positions at a time.

    The gradients are made in the same pass, while the logits are at hand: no (N, V) array ever exists.
    """

    @staticmethod
    def forward(ctx: Any, outputs: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        """(N, D), (V, D), (V,), (N,) to a scalar."""
        wanted = any(ctx.needs_input_grad)
        d_outputs = torch.empty_like(outputs) if wanted else None
        d_weight = torch.zeros_like(weight) if wanted else None
        d_bias = torch.zeros_like(bias) if wanted else None
        total = outputs.new_zeros((), dtype=torch.float64)
        step = max(1, AT_ONCE // len(weight))
        for at in range(0, len(outputs), step):
            out, target = outputs[at : at + step], targets[at : at + step, None]
            logits = torch.addmm(bias, out, weight.t())  # (n, V)
            scale = torch.logsumexp(logits, dim=1, keepdim=True)
            total += (scale - logits.gather(1, target)).sum()
            if d_outputs is None or d_weight is None or d_bias is None:
                continue
            d = logits.sub_(scale).exp_()  # probabilities, then the gradient of the logits
            d.scatter_add_(1, target, d.new_full(target.shape, -1.0))
            torch.mm(d, weight, out=d_outputs[at : at + step])
            d_weight.addmm_(d.t(), out)
            d_bias += d.sum(dim=0)
        if wanted:
            ctx.save_for_backward(d_outputs, d_weight, d_bias)
        return total.to(outputs.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients made above, times what reaches the sum."""
        d_outputs, d_weight, d_bias = ctx.saved_tensors
        return d_outputs * d_loss, d_weight * d_loss, d_bias * d_loss, None


def full_loss(softmax: Softmax, outputs: Tensor, targets: Tensor) -> Tensor:
    """Sum of minus log p over positions, exactly."""
    loss: Tensor = FullSoftmax.apply(outputs, softmax.weight, softmax.bias, targets)  # type: ignore[no-untyped-call]
    return loss


class LogUniform:
    """Draws distinct words, frequent ones more often: P(k) = log((k + 2) / (k + 1)) / log(V + 1).

    The vocabulary must be sorted by falling count. A draw is repeated until enough distinct words were met, and
    the expected count of a word is the chance that it was met at all in so many draws.
    """

    def __init__(self, words: int) -> None:
        self.words = words

    def draw(self, samples: int, random: np.random.Generator) -> tuple[Tensor, int]:
        """(S,) distinct word ids, and how many draws it took."""
        seen: dict[int, None] = {}
        draws = 0
        while len(seen) < samples:
            values = np.exp(random.random(samples) * np.log(self.words + 1)).astype(np.int64) - 1
            for value in np.minimum(values, self.words - 1).tolist():
                draws += 1
                seen[value] = None
                if len(seen) == samples:
                    break
        return torch.tensor(list(seen)), draws

    def log_expected(self, ids: Tensor, draws: int) -> Tensor:
        """Log of the expected count of each word among the distinct ones of so many draws."""
        k = ids.double()
        p = torch.log((k + 2) / (k + 1)) / np.log(self.words + 1)
        return torch.log(-torch.expm1(draws * torch.log1p(-p))).float()


def sampled_loss(
    softmax: Softmax, outputs: Tensor, targets: Tensor, sampler: LogUniform, samples: int, random: np.random.Generator
) -> Tensor:
    """Sum over positions of minus log p(target) among the target and a sample, both corrected by how likely drawn."""
    drawn, draws = sampler.draw(samples, random)
    drawn = drawn.to(outputs.device)
    near = F.embedding(targets, softmax.weight)  # (N, D)
    true = (outputs * near).sum(dim=1) + softmax.bias[targets] - sampler.log_expected(targets, draws)  # (N,)
    weight = F.embedding(drawn, softmax.weight)  # (S, D)
    other = F.linear(outputs, weight, softmax.bias[drawn] - sampler.log_expected(drawn, draws))  # (N, S)
    other = other.masked_fill(targets[:, None] == drawn, float("-inf"))  # the target itself was drawn
    total = torch.logsumexp(torch.cat([true[:, None], other], dim=1), dim=1)
    return (total - true).sum()

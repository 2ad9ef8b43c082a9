"""The loss of training: minus the log-probability of each word, by the full softmax or by a sample of it.

Both are one autograd function over all positions of both directions. It computes the gradients in the forward pass,
where the logits are available, for some positions at a time: no array of all positions by all words ever exists, and
the large gradient of the softmax is written once.

Knows: torch, Softmax. Blind to: text, networks.
"""

# N positions, V words, D one direction, S sampled words

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from bilmo.net.kernels.autocast import product_dtype
from bilmo.net.softmax import Softmax

Loss = Callable[[Softmax, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Softmax, outputs (N, D) and targets (N,) to the mean loss, with gradients, and the loss of each (N,), without."""

LOGITS_AT_ONCE = 1 << 22
"""Logits in memory at a time (16 MB of float32)."""


class _Scored(Function):
    """Mean over positions of minus log p(target) among some words.

    `weight` and `bias` are the softmax; `words` are the rows that compete with the target, in ascending order, or None
    for all rows.
    `offset` (V,) or (S,) is added to the logits of the competing words, `target_offset` (N,) to that of each target.
    """

    @staticmethod
    def forward(
        ctx: Any,
        outputs: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        words: Tensor | None,
        offset: Tensor | None,
        target_offset: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        rows = weight if words is None else weight.index_select(0, words)  # (V or S, D)
        row_bias = bias if words is None else bias.index_select(0, words)
        if offset is not None:
            row_bias = row_bias + offset
        dtype = product_dtype(outputs.device)
        short_rows = rows if dtype is None else rows.to(dtype)
        each = outputs.new_empty(len(outputs))
        d_outputs, d_rows, d_row_bias = torch.empty_like(outputs), torch.zeros_like(rows), torch.zeros_like(row_bias)
        d_true = outputs.new_empty(len(outputs))  # gradient of the target's logit, if it is computed separately
        step = min(max(1, LOGITS_AT_ONCE // len(rows)), len(outputs))
        buffer = outputs.new_empty(step, len(rows))  # one for all pieces: allocating it takes longer than the sums
        for at in range(0, len(outputs), step):
            piece = slice(at, at + step)
            out, target = outputs[piece], targets[piece]
            logits = buffer[: len(out)]  # (n, V or S)
            if dtype is None:
                torch.addmm(row_bias, out, rows.t(), out=logits)
            else:
                torch.add(out.to(dtype) @ short_rows.t(), row_bias, out=logits)
            if words is None:
                true = logits.gather(1, target[:, None])[:, 0]
            else:
                assert target_offset is not None
                place = torch.searchsorted(words, target).clamp_(max=len(words) - 1)
                hit = torch.nonzero(words[place] == target)[:, 0]
                logits[hit, place[hit]] = float("-inf")  # the target itself was drawn
                near = weight.index_select(0, target)  # (n, D)
                true = (out * near).sum(dim=1) + bias[target] + target_offset[piece]
            peak = logits.amax(dim=1).clamp_(min=torch.finfo(logits.dtype).min)  # -inf if every word was left out
            d = logits.sub_(peak[:, None]).exp_()
            scale = peak + d.sum(dim=1).log_()
            if words is not None:
                scale = torch.logaddexp(scale, true)
            each[piece] = scale - true
            d.mul_((peak - scale).exp_()[:, None])  # probabilities, then the gradient of the logits for each position
            if words is None:
                d.scatter_add_(1, target[:, None], d.new_full((len(d), 1), -1))
            if dtype is None:
                torch.mm(d, rows, out=d_outputs[piece])
                d_rows.addmm_(d.t(), out)
            else:
                short_d = d.to(dtype)
                d_outputs[piece] = short_d @ short_rows
                d_rows += short_d.t() @ out.to(dtype)
            if words is not None:
                d_true[piece] = (true - scale).exp_() - 1
                d_outputs[piece] += d_true[piece, None] * near
            d_row_bias += d.sum(dim=0)
        for part in (d_outputs, d_rows, d_row_bias, d_true):
            part.div_(len(outputs))
        if words is None:
            ctx.grads = (d_outputs, d_rows, d_row_bias)
        else:
            d_weight, d_bias = torch.zeros_like(weight), torch.zeros_like(bias)
            d_weight.index_add_(0, words, d_rows).index_add_(0, targets, d_true[:, None] * outputs)
            d_bias.index_add_(0, words, d_row_bias).index_add_(0, targets, d_true)
            ctx.grads = (d_outputs, d_weight, d_bias)
        ctx.mark_non_differentiable(each)
        return each.mean(), each

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_mean: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients computed above, times that of the mean."""
        grads = ctx.grads
        ctx.grads = None
        if float(d_mean) != 1:
            grads = tuple(part.mul_(d_mean) for part in grads)
        return (*grads, None, None, None, None)


def full_loss(softmax: Softmax, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The exact loss, over the whole vocabulary."""
    if not torch.is_grad_enabled():  # gradients are two thirds of the work
        each = -softmax.log_probs(outputs, targets)
        return each.mean(), each
    return _Scored.apply(outputs, softmax.weight, softmax.bias, targets, None, None, None)  # type: ignore[no-untyped-call, no-any-return]


class LogUniform:
    """Draws distinct words, frequent ones more often: P(k) = log((k + 2) / (k + 1)) / log(V + 1).

    The vocabulary must be in descending order of frequency. Draws are repeated until there are enough distinct words,
    and the expected count of a word is the probability that it occurs in that number of draws.
    """

    def __init__(self, words: int) -> None:
        self.words = words

    def draw(self, samples: int, random: np.random.Generator) -> tuple[Tensor, int]:
        """(S,) distinct word ids, and the number of draws."""
        found = np.zeros(0, dtype=np.int64)
        while True:
            more = np.exp(random.random(2 * samples) * np.log(self.words + 1)).astype(np.int64) - 1
            found = np.concatenate([found, np.minimum(more, self.words - 1)])
            distinct, first = np.unique(found, return_index=True)
            if len(distinct) >= samples:
                kept = np.sort(np.argsort(first)[:samples])  # the first ones drawn, by their ids
                return torch.from_numpy(distinct[kept]), int(first[kept].max()) + 1

    def log_expected(self, ids: Tensor, draws: int) -> Tensor:
        """Log of the expected count of each word among the distinct words of a number of draws."""
        k = ids.double()
        p = torch.log((k + 2) / (k + 1)) / np.log(self.words + 1)
        return torch.log(-torch.expm1(draws * torch.log1p(-p)))


def sampled_loss(samples: int, random: np.random.Generator, drawn: Callable[[Tensor], None] | None = None) -> Loss:
    """The loss among the target and a sample of words, both corrected by the probability of being drawn.

    drawn: gets the sample, (S,) distinct rows of the softmax.
    """

    def loss(softmax: Softmax, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        sampler = LogUniform(len(softmax.weight))
        words, draws = sampler.draw(samples, random)
        if drawn is not None:
            drawn(words)
        offsets = (
            -sampler.log_expected(ids, draws).to(outputs.dtype).to(outputs.device) for ids in (words, targets.cpu())
        )
        arguments = (outputs, softmax.weight, softmax.bias, targets, words.to(outputs.device), *offsets)
        return _Scored.apply(*arguments)  # type: ignore[no-untyped-call, no-any-return]

    return loss

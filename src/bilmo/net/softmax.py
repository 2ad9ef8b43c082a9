"""The head of the language model: outputs of one direction to log-probabilities of words.

Knows: torch. Blind to: the network that made the outputs.
"""

# N positions, V words, D one direction

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

BLOCK_ROWS = 1024
"""Positions, and words, whose logits are held at a time: 4 MB of float32, which fit the cache."""


class Softmax(nn.Module):
    """One matrix and bias over the vocabulary, shared by both directions."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(words, width))
        self.bias = nn.Parameter(torch.zeros(words))
        if not self.weight.is_meta:
            nn.init.normal_(self.weight, std=width**-0.5)

    def log_probs(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Natural log-probability of each target word: (N, D) and (N,) to (N,), over the whole vocabulary."""
        parts = []
        for out, target in zip(outputs.split(BLOCK_ROWS), targets.split(BLOCK_ROWS), strict=True):
            chosen = (out * self.weight[target]).sum(dim=1) + self.bias[target]  # (n,)
            scale = torch.full_like(chosen, -torch.inf)
            for weight, bias in zip(self.weight.split(BLOCK_ROWS), self.bias.split(BLOCK_ROWS), strict=True):
                logits = torch.addmm(bias, out, weight.t())  # (n, v)
                scale = torch.logaddexp(scale, torch.logsumexp(logits, dim=1))
            parts.append(chosen - scale)
        return torch.cat(parts)

    def all_log_probs(self, outputs: Tensor) -> Tensor:
        """Natural log-probability of every word of the vocabulary: (N, D) to (N, V)."""
        return torch.addmm(self.bias, outputs, self.weight.t()).log_softmax(dim=1)


def perplexity(loss: float) -> float:
    """The perplexity of a loss in nats per word; infinite if it does not fit into a float."""
    return math.exp(loss) if loss < 700 else math.inf

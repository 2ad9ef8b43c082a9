"""The head of the language model: outputs of one direction to log-probabilities of words.

Knows: torch. Blind to: the network that made the outputs.
"""

# N positions, V words, D one direction

from __future__ import annotations

import torch
from torch import Tensor, nn

AT_ONCE = 1 << 24
"""Logits held at a time (64 MB of float32): a vocabulary of 800,000 words must not fill the memory."""


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
        step = max(1, AT_ONCE // len(self.weight))
        parts = []
        for out, target in zip(outputs.split(step), targets.split(step), strict=True):
            logits = nn.functional.linear(out, self.weight, self.bias)  # (n, V)
            chosen = logits.gather(1, target[:, None])[:, 0]
            parts.append(chosen - torch.logsumexp(logits, dim=1))
        return torch.cat(parts)

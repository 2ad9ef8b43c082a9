"""Token vectors to one vector per text: mean, max, or a learned attention; padding never counts.

Knows: torch. Blind to: words, labels.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

How = Literal["mean", "max", "attention"]
MINUS = -1e9
"""The score of padding, below that of every token."""


class Pool(nn.Module):
    """(B, T, width) to (B, width); a text without tokens becomes zeros."""

    def __init__(self, how: How, width: int) -> None:
        super().__init__()
        self.how = how
        self.attention = nn.Linear(width, 1) if how == "attention" else None

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Pool the tokens under the mask."""
        real = mask.unsqueeze(-1)  # (B, T, 1)
        if self.how == "mean":
            return (x * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
        if self.attention is not None:
            scores = self.attention(x).masked_fill(~real, MINUS)
            return (torch.softmax(scores, dim=1) * real * x).sum(dim=1)
        best = x.masked_fill(~real, MINUS).amax(dim=1)
        return best * mask.any(dim=1, keepdim=True)

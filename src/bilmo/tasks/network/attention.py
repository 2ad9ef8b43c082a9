"""Attention from the tokens of one text to those of another; padding never counts.

Knows: torch. Blind to: words, labels.
"""

# B texts, T tokens that attend, U tokens that are attended to, W width

from __future__ import annotations

import torch
from torch import Tensor, nn

from bilmo.tasks.network.pool import MINUS


def attention(similar: Tensor, mask: Tensor) -> Tensor:
    """(B, T, U): weights from similarities. They are 0 on padding, and everywhere for a text without tokens.

    mask: (B, U), or (B, T, U) where tokens attend to different ones.
    """
    real = mask if mask.dim() == similar.dim() else mask.unsqueeze(1)
    return torch.softmax(similar.masked_fill(~real, MINUS), dim=-1) * real


class Similarity(nn.Module):
    """How similar tokens are: a learned sum over both vectors and their product."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, 1), nn.Linear(width, 1, bias=False)
        self.product = nn.Parameter(torch.empty(width))
        nn.init.normal_(self.product, std=width**-0.5)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(B, T, W) and (B, U, W) to (B, T, U)."""
        alone: Tensor = self.first(x) + self.second(y).transpose(1, 2)  # (B, T, U)
        return alone + (x * self.product) @ y.transpose(1, 2)

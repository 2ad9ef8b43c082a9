"""Rows of a tensor by their numbers, some of them several times.

Knows: torch. Blind to: what the rows are.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def chosen_rows(x: Tensor, rows: Tensor) -> Tensor:
    """The same values as `x[rows]`, whose backward adds up gradients in arbitrary order; this one does not."""
    found: Tensor = F.embedding(rows, x.flatten(1)).unflatten(-1, x.shape[1:])
    return found

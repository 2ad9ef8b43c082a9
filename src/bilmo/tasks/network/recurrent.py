"""A recurrent network of the task's own over padded texts; padding never touches a token.

Knows: the cells of the biLM. Blind to: words, labels.
"""

# B texts, T tokens, N all tokens of all texts

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bilmo.net.bilm import Rows
from bilmo.net.cells import Cell
from bilmo.net.config import CellConfig
from bilmo.net.kernels.threads import trained_side_by_side


class Recurrent(nn.Module):
    """An LSTM, or one for each direction, side by side."""

    def __init__(self, width: int, hidden: int, *, both: bool) -> None:
        super().__init__()
        config = CellConfig(cells=hidden, project=False, cell_clip=None, projection_clip=None)
        self.forward_cell = Cell(config, hidden, inputs=width)
        self.backward_cell = Cell(config, hidden, inputs=width) if both else None
        self.output_width = hidden * (2 if both else 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, T, width) to (B, T, output width), zero where there is no token."""
        rows = Rows(mask.sum(dim=1).clamp(min=1).numpy())  # a text without tokens runs over one vector of zeros
        cells = [self.forward_cell, *([] if self.backward_cell is None else [self.backward_cell])]
        homes = [rows.home(reverse=cell is self.backward_cell) for cell in cells]
        packed = [F.embedding(home, x.flatten(0, 1)) for home in homes]  # (N, width) each
        tasks: list[Callable[[Tensor], Tensor]] = [partial(_run, cell, rows) for cell in cells]
        outputs = trained_side_by_side(tasks, packed)
        halves = [rows.unpack(out, home) for out, home in zip(outputs, homes, strict=True)]
        return torch.cat(halves, dim=-1) * mask.unsqueeze(-1)


def _run(cell: Cell, rows: Rows, x: Tensor) -> Tensor:
    out: Tensor
    out, _ = cell(x, rows.steps, cell.zero_state(len(rows.lengths)))
    return out

"""A recurrent network of the task's own over padded texts; padding never touches a token.

Knows: the driver and the cells of the biLM. Blind to: words, labels.
"""

# B texts, T tokens

from __future__ import annotations

import numpy as np
from torch import Tensor, nn

from bilmo.ids.batch import Places
from bilmo.net.cells import Cell
from bilmo.net.config import CellConfig, Direction
from bilmo.net.run import run
from bilmo.net.state import State


class Recurrent(nn.Module):
    """An LSTM that reads forward, or two that read in both directions."""

    def __init__(self, width: int, hidden: int, *, both: bool) -> None:
        super().__init__()
        config = CellConfig(cells=hidden, project=False, cell_clip=None, projection_clip=None)
        self.forward_cell = Cell(config, hidden, inputs=width)
        self.backward_cell = Cell(config, hidden, inputs=width) if both else None
        self.output_width = hidden * (2 if both else 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, T, width) to (B, T, output width), zero where there is no token."""
        cells: dict[Direction, Cell] = {"forward": self.forward_cell}
        if self.backward_cell is not None:
            cells["backward"] = self.backward_cell
        lengths = mask.sum(dim=1).clamp(min=1).cpu().numpy()  # a text without tokens runs over one vector of zeros
        rows, tokens = mask.shape
        first, token = tokens * np.arange(rows)[:, None], np.arange(tokens)
        places = Places(first + token, first + np.maximum(lengths[:, None] - 1 - token, 0), lengths)
        layers, _ = run(
            {direction: [cell] for direction, cell in cells.items()},
            x.flatten(0, 1),
            places,
            State({direction: [cell.zero_state(rows)] for direction, cell in cells.items()}),
            only_top=True,
            separate_graphs=True,
        )
        return layers.padded().values[0] * mask.unsqueeze(-1)

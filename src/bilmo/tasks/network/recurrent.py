"""Recurrent networks of the task's own over padded texts; padding never touches a token.

Knows: the driver and the cells of the biLM. Blind to: words, labels.
"""

# B texts, T tokens

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
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
        first, token = tokens * np.arange(rows)[:, None], np.arange(lengths.max())  # all rows may have padding
        places = Places(first + token, first + np.maximum(lengths[:, None] - 1 - token, 0), lengths)
        layers, _ = run(
            {direction: [cell] for direction, cell in cells.items()},
            x.flatten(0, 1),
            places,
            State({direction: [cell.zero_state(rows)] for direction, cell in cells.items()}),
            only_top=True,
            separate_graphs=True,
        )
        values = F.pad(layers.padded().values[0], (0, 0, 0, tokens - int(lengths.max())))  # (B, T, output width)
        return values * mask.unsqueeze(-1)


class DeepRecurrent(nn.Module):
    """BiLSTM layers on top of each other, with a highway connection around each whose input is as wide as its output.

    A learned gate chooses, for each value, between the output of a layer and its input. Between layers, dropout sets
    the same values to 0 at every token of a text.
    """

    def __init__(self, width: int, hidden: int, depth: int, *, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.output_width = 2 * hidden
        widths = [width, *[self.output_width] * (depth - 1)]
        self.layers = nn.ModuleList(Recurrent(before, hidden, both=True) for before in widths)
        self.gates = nn.ModuleList(
            nn.Linear(before, before) if before == self.output_width else nn.Identity() for before in widths
        )

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, T, width) to (B, T, output width), zero where there is no token."""
        for number, (layer, gate) in enumerate(zip(self.layers, self.gates, strict=True)):
            if number:
                x = x * F.dropout(x.new_ones(len(x), 1, x.shape[2]), self.dropout, self.training)
            value = layer(x, mask)  # (B, T, output width)
            if isinstance(gate, nn.Linear):
                share = torch.sigmoid(gate(x))
                value = share * value + (1 - share) * x
            x = value
        return x * mask.unsqueeze(-1)

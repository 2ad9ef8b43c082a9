"""A recurrent network of the task's own over padded texts; padding never touches a token.

Knows: torch. Blind to: words, labels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Recurrent(nn.Module):
    """An LSTM, or one for each direction, side by side."""

    def __init__(self, width: int, hidden: int, *, both: bool) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, hidden, batch_first=True, bidirectional=both)
        self.output_width = hidden * (2 if both else 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, T, width) to (B, T, output width), zero where there is no token."""
        lengths = mask.sum(dim=1).clamp(min=1)  # a text without tokens runs over one vector of zeros
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=x.shape[1])
        return torch.as_tensor(out * mask.unsqueeze(-1))

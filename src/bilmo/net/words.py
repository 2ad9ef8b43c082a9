"""Word encoders: a word without its context becomes a vector.

Knows: ids.batch.Words, config, convolve, prepared, torch. Blind to: sentences, recurrence, files.
"""

# U distinct words, C characters, E character width, F filters, M table width, D network width

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bilmo.ids.batch import Words
from bilmo.net.config import BiLMConfig, CharsConfig, Precision, TableConfig
from bilmo.net.kernels.convolve import LargestAnswers
from bilmo.net.kernels.encoder import Int8Convolutions, Linear, PreparedHighway, Tables, linear

AT_ONCE = 1 << 22
"""Windows times filters held at a time (16 MB of float32)."""
LONG = 1 << 14
"""Characters of a word that are looked at together."""


class Highway(nn.Module):
    """g * x + (1 - g) * relu(transform x) with g = sigmoid(carry x)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.transform = nn.Linear(width, width)
        self.carry = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(U, F) to (U, F); the non-linearity is relu whatever the convolution's activation is."""
        g = torch.sigmoid(self.carry(x))
        return g * x + (1 - g) * F.relu(self.transform(x))


def prepared_highways(highways: nn.ModuleList, precision: Precision) -> list[PreparedHighway]:
    """The same highways, for inference."""
    each = cast("Iterable[Highway]", highways)
    return [PreparedHighway(highway.transform, highway.carry, precision) for highway in each]


class CharCNN(nn.Module):
    """Characters to a word: convolutions of several widths, max over places, activation, highways."""

    def __init__(self, config: CharsConfig) -> None:
        super().__init__()
        self.config = config
        self.table = nn.Parameter(torch.empty(config.rows, config.width))
        self.filters = nn.ModuleList(nn.Conv1d(config.width, n, w) for w, n in config.filters)
        self.highways = nn.ModuleList(Highway(config.outputs) for _ in range(config.highways))
        self._largest: Callable[[Tensor], Tensor] | None = None
        self._highways: list[PreparedHighway] = []

    @torch.no_grad()
    def prepare(self, precision: Precision) -> None:
        """Make the weights ready for inference; they must not change any more."""
        # A table of Unicode characters may have thousands of rows, so in float32 convolutions stay as they are there.
        if self.config.kind == "bytes":
            self._largest = Tables(self.table, self.convolutions())
        elif precision == "int8":
            self._largest = Int8Convolutions(self.table, self.convolutions())
        self._highways = prepared_highways(self.highways, precision)

    def convolutions(self) -> list[nn.Conv1d]:
        """One for each width, in the order of the config."""
        return list(cast("Iterable[nn.Conv1d]", self.filters))

    def forward(self, chars: Tensor) -> Tensor:
        """(U, C) ids to (U, F)."""
        here = chars.device.type == "cpu"
        prepared = here and not torch.is_grad_enabled()
        if prepared:
            largest = self._largest or self._convolved
        else:
            largest = self._trained if here else self._convolved
        overlap = self.config.widest_filter - 1
        x = largest(chars[:, : LONG + overlap])  # (U, F)
        for at in range(LONG, chars.shape[1] - overlap, LONG):  # a word of a million characters, piece by piece
            x = torch.maximum(x, largest(chars[:, at : at + LONG + overlap]))
        x = F.relu(x) if self.config.activation == "relu" else torch.tanh(x)
        for highway in self._highways if prepared and self._highways else self.highways:
            x = highway(x)
        return x

    def _trained(self, chars: Tensor) -> Tensor:
        """(U, C) ids to (U, F), the same with a fast way back."""
        filters = [part for conv in self.convolutions() for part in (conv.weight, conv.bias)]
        return cast("Tensor", LargestAnswers.apply(chars, self.table, *filters))  # type: ignore[no-untyped-call]

    def _convolved(self, chars: Tensor) -> Tensor:
        """(U, C) ids to (U, F): the largest answer of each filter."""
        embedded = F.embedding(chars, self.table).transpose(1, 2)  # (U, E, C)
        return torch.cat([self._best(embedded, conv) for conv in self.convolutions()], dim=1)

    def _best(self, embedded: Tensor, conv: nn.Conv1d) -> Tensor:
        """The largest answer of each filter over all places: (U, E, C) to (U, n), in pieces of bounded size."""
        width = conv.kernel_size[0]
        places = embedded.shape[2] - width + 1
        step = max(1, AT_ONCE // (conv.out_channels * max(1, len(embedded))))
        pieces = [embedded[:, :, at : at + step + width - 1] for at in range(0, places, step)]
        best: Tensor = conv(pieces[0]).amax(dim=2)
        for piece in pieces[1:]:
            best = torch.maximum(best, conv(piece).amax(dim=2))
        return best


class WordTable(nn.Module):
    """A vector for each word of the vocabulary; given vectors keep learned rows for the three marks."""

    def __init__(self, config: TableConfig) -> None:
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.empty(config.rows, config.width))
        if config.given:
            self.marks = nn.Parameter(torch.empty(3, config.width))
            self.weight.requires_grad_(config.tuned)

    def forward(self, ids: Tensor) -> Tensor:
        """(U,) ids to (U, M)."""
        x = F.embedding(ids, self.weight)
        if self.config.given:
            marks = F.embedding(ids.clamp(max=2), self.marks)
            x = torch.where(ids[:, None] < 3, marks, x)
        return x


class WordEncoder(nn.Module):
    """[table ; characters], then the projection to the network's width, then highways where they come last."""

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        parts = config.words
        self.table = WordTable(parts.table) if parts.table else None
        self.chars = CharCNN(parts.chars) if parts.chars else None
        self.project = nn.Linear(parts.outputs, config.width) if parts.project else None
        self.highways = nn.ModuleList(Highway(config.width) for _ in range(parts.highways))
        self._project: Linear | None = None
        self._highways: list[PreparedHighway] = []

    @torch.no_grad()
    def prepare(self, precision: Precision) -> None:
        """Make the weights ready for inference; they must not change any more."""
        if self.chars is not None:
            self.chars.prepare(precision)
        if self.project is not None:
            self._project = linear(self.project.weight, self.project.bias, precision)
        self._highways = prepared_highways(self.highways, precision)

    def forward(self, words: Words) -> Tensor:
        """The distinct words of a batch to (U, D)."""
        device = next(self.parameters()).device
        parts = []
        if self.table is not None:
            assert words.ids is not None
            parts.append(self.table(torch.as_tensor(words.ids, device=device)))
        if self.chars is not None:
            assert words.chars is not None
            parts.append(self.chars(torch.as_tensor(words.chars, device=device)))
        x = torch.cat(parts, dim=1) if len(parts) > 1 else parts[0]  # (U, M + F)
        prepared = not torch.is_grad_enabled() and x.device.type == "cpu"
        project = self._project if prepared and self._project else self.project
        x = project(x) if project is not None else x  # (U, D)
        for highway in self._highways if prepared and self._highways else self.highways:
            x = highway(x)
        return x

"""Word encoders: from a word without context to its vector.

Knows: ids.batch.Words, config, kernels, torch. Blind to: sentences, recurrence, files.
"""

# U distinct words, C characters, E character width, F filters, M table width, D network width

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bilmo.ids.batch import Words
from bilmo.net.config import BiLMConfig, CharsConfig, Precision, TableConfig
from bilmo.net.kernels.convolve import LargestAnswers
from bilmo.net.kernels.encoder import Int8Convolutions, PreparedHighway, Tables, linear

AT_ONCE = 1 << 22
"""Windows times filters held at a time (16 MB of float32)."""
LONG = 1 << 14
"""Characters of a word that are convolved at a time."""

Map = Callable[[Tensor], Tensor]
"""A module or its prepared counterpart."""


class Highway(nn.Module):
    """g * x + (1 - g) * relu(transform x) with g = sigmoid(carry x)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.transform = nn.Linear(width, width)
        self.carry = nn.Linear(width, width)

    def reset_parameters(self) -> None:
        """Random weights; biases 0, but start with open carry gates, so that highways pass their input through."""
        _reset_linear(self.transform)
        _reset_linear(self.carry)
        nn.init.constant_(self.carry.bias, 2.0)

    def forward(self, x: Tensor) -> Tensor:
        """(U, F) to (U, F); the non-linearity is relu whatever the convolution's activation is."""
        g = torch.sigmoid(self.carry(x))
        return g * x + (1 - g) * F.relu(self.transform(x))


def _reset_linear(linear: nn.Linear) -> None:
    nn.init.normal_(linear.weight, std=linear.in_features**-0.5)
    nn.init.zeros_(linear.bias)


def _prepared_highways(highways: nn.ModuleList, precision: Precision) -> list[Map]:
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

    def reset_parameters(self) -> None:
        """The random values of bilm-tf."""
        nn.init.uniform_(self.table, -1.0, 1.0)
        for conv in self.convolutions():
            if self.config.activation == "relu":
                nn.init.uniform_(conv.weight, -0.05, 0.05)
            else:
                nn.init.normal_(conv.weight, std=(conv.weight[0].numel()) ** -0.5)
            nn.init.zeros_(cast("Tensor", conv.bias))
        for highway in cast("Iterable[Highway]", self.highways):
            highway.reset_parameters()

    def convolutions(self) -> list[nn.Conv1d]:
        """One for each width, in the order of the config."""
        return list(cast("Iterable[nn.Conv1d]", self.filters))

    def forward(self, chars: Tensor) -> Tensor:
        """(U, C) ids to (U, F)."""
        fast = chars.device.type == "cpu" and torch.is_grad_enabled()
        largest = self._largest_for_training if fast else self._largest
        return _filtered(chars, self.config, largest, cast("Iterable[Map]", self.highways))

    def _largest_for_training(self, chars: Tensor) -> Tensor:
        """As `_largest`, with a fast backward."""
        filters = [part for conv in self.convolutions() for part in (conv.weight, conv.bias)]
        return cast("Tensor", LargestAnswers.apply(chars, self.table, *filters))  # type: ignore[no-untyped-call]

    def _largest(self, chars: Tensor) -> Tensor:
        """(U, C) ids to (U, F): the maximum of each filter over all positions, in chunks of bounded size."""
        embedded = F.embedding(chars, self.table).transpose(1, 2)  # (U, E, C)
        best = []
        for conv in self.convolutions():
            width = conv.kernel_size[0]
            places = embedded.shape[2] - width + 1
            step = max(1, AT_ONCE // (conv.out_channels * max(1, len(embedded))))
            pieces = [conv(embedded[:, :, at : at + step + width - 1]).amax(dim=2) for at in range(0, places, step)]
            best.append(pieces[0] if len(pieces) == 1 else torch.stack(pieces).amax(dim=0))  # (U, n)
        return torch.cat(best, dim=1)

    def prepared(self, precision: Precision) -> Map:
        """The same for inference, with copied weights."""
        largest: Map
        if self.config.kind == "bytes":
            largest = Tables(self.table, self.convolutions())
        elif precision == "int8":
            largest = Int8Convolutions(self.table, self.convolutions())
        else:  # a table of Unicode characters may have thousands of rows, too many for `Tables`
            largest = copy.deepcopy(self).requires_grad_(False)._largest
        highways = _prepared_highways(self.highways, precision)
        return lambda chars: _filtered(chars, self.config, largest, highways)


def _filtered(chars: Tensor, config: CharsConfig, largest: Map, highways: Iterable[Map]) -> Tensor:
    """(U, C) ids to (U, F); a word of a million characters goes through the filters piece by piece."""
    overlap = max(width for width, _ in config.filters) - 1
    x = largest(chars[:, : LONG + overlap])
    for at in range(LONG, chars.shape[1] - overlap, LONG):
        x = torch.maximum(x, largest(chars[:, at : at + LONG + overlap]))
    x = F.relu(x) if config.activation == "relu" else torch.tanh(x)
    for highway in highways:
        x = highway(x)
    return x


class WordTable(nn.Module):
    """One vector for each word of the vocabulary; given vectors have learned rows for the three marks."""

    def __init__(self, config: TableConfig) -> None:
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.empty(config.rows, config.width))
        if config.given:
            self.marks = nn.Parameter(torch.empty(3, config.width))
            self.weight.requires_grad_(config.tuned)

    def reset_parameters(self) -> None:
        """Random values for every row."""
        nn.init.normal_(self.weight, std=self.config.width**-0.5)
        if self.config.given:
            nn.init.normal_(self.marks, std=self.config.width**-0.5)

    def forward(self, ids: Tensor) -> Tensor:
        """(U,) ids to (U, M)."""
        x = F.embedding(ids, self.weight)
        if self.config.given:
            marks = F.embedding(ids.clamp(max=2), self.marks)
            x = torch.where(ids[:, None] < 3, marks, x)
        return x


class WordEncoder(nn.Module):
    """[table ; characters], the projection, then highway layers, if the config places them after the projection."""

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        parts = config.words
        self.table = WordTable(parts.table) if parts.table else None
        self.chars = CharCNN(parts.chars) if parts.chars else None
        self.project = nn.Linear(parts.outputs, config.width) if parts.project else None
        self.highways = nn.ModuleList(Highway(config.width) for _ in range(parts.highways))

    def reset_parameters(self) -> None:
        """Random values for every part."""
        if self.table is not None:
            self.table.reset_parameters()
        if self.chars is not None:
            self.chars.reset_parameters()
        if self.project is not None:
            _reset_linear(self.project)
        for highway in cast("Iterable[Highway]", self.highways):
            highway.reset_parameters()

    def forward(self, words: Words) -> Tensor:
        """The distinct words of a batch to (U, D)."""
        device = next(self.parameters()).device
        return _encoded(words, device, self.table, self.chars, self.project, cast("Sequence[Map]", self.highways))


class PreparedWords:
    """A word encoder for inference on the CPU, made once from a `WordEncoder`.

    All weights are copied except the word table, which is shared: it may be larger than all the rest.
    """

    def __init__(self, encoder: WordEncoder, precision: Precision) -> None:
        self._table: Map | None = None
        if encoder.table is not None:
            with torch.device("meta"):
                table = WordTable(encoder.table.config)
            table.load_state_dict(encoder.table.state_dict(), assign=True)
            self._table = table.requires_grad_(False)
        self._chars = encoder.chars.prepared(precision) if encoder.chars is not None else None
        project = encoder.project
        self._project = linear(project.weight, project.bias, precision) if project is not None else None
        self._highways = _prepared_highways(encoder.highways, precision)

    def __call__(self, words: Words) -> Tensor:
        """As `WordEncoder.forward`."""
        return _encoded(words, torch.device("cpu"), self._table, self._chars, self._project, self._highways)


def _encoded(
    words: Words,
    device: torch.device,
    table: Map | None,
    chars: Map | None,
    project: Map | None,
    highways: Sequence[Map],
) -> Tensor:
    """The distinct words of a batch to (U, D) by the parts of a word encoder, trainable or prepared."""
    parts = []
    if table is not None:
        assert words.ids is not None
        parts.append(table(torch.as_tensor(words.ids, device=device)))
    if chars is not None:
        assert words.chars is not None
        parts.append(chars(torch.as_tensor(words.chars, device=device)))
    x = torch.cat(parts, dim=1) if len(parts) > 1 else parts[0]  # (U, M + F)
    x = project(x) if project is not None else x  # (U, D)
    for highway in highways:
        x = highway(x)
    return x

"""The one way in of every task: [word vectors ; characters ; mixed ELMo layers], and a second mix for the output.

Knows: TextBatch, Mix, word encoders. Blind to: heads, labels, files.
"""

# B texts, T tokens, U distinct words, L layers, W width of a layer's vector

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bilmo.errors import ConfigError
from bilmo.net.config import BiLMConfig, CharsConfig, TableConfig
from bilmo.net.layers import Layers
from bilmo.net.mix import How, Mix
from bilmo.net.words import CharCNN, WordTable
from bilmo.tasks.core.settings import Settings
from bilmo.tasks.network.feed import TextBatch
from bilmo.tasks.network.tuned import Tuned

CHAR_WIDTH, CHAR_WINDOW, CHAR_MOST = 16, 3, 50
"""The small character CNN: width of a character, characters a filter sees, characters of a word that are read."""


@dataclass(frozen=True)
class Inputs:
    """Vectors of texts, as heads take them."""

    x: Tensor
    """(B, T, width)"""
    mask: Tensor
    """(B, T)"""
    late: Tensor | None
    """(B, T, late width): the second mix, for the output of the task's own network."""


@dataclass(frozen=True)
class LearnedMix:
    """What a task has learned about the layers."""

    where: str
    """input or output"""
    shares: tuple[float, ...]
    """Of layers 0 to L; they add up to 1."""
    scale: float


class WayIn(nn.Module):
    """Texts to vectors."""

    def __init__(
        self, settings: Settings, *, bilm: BiLMConfig | None, table: TableConfig | None, tuned: Tuned | None = None
    ) -> None:
        """`bilm` is the shape of the biLM that gives the layers, `tuned` that one itself where it learns."""
        super().__init__()
        self.table = WordTable(table) if table else None
        self.chars = CharCNN(chars_config(settings)) if settings.chars else None
        self.tuned = tuned
        self.mixes = nn.ModuleDict()
        if bilm:
            for where, wanted in (("input", settings.at_input), ("output", settings.at_output)):
                if wanted:
                    self.mixes[where] = Mix(
                        layers=bilm.layers,
                        width=bilm.width,
                        directions=len(bilm.directions),
                        how=cast("How", settings.mix),
                    )
        self.dropout = nn.Dropout(settings.dropout)
        self._l2 = settings.l2
        self.width = (table.width if table else 0) + settings.chars + self._mixed_width("input")
        self.late_width = self._mixed_width("output")
        if not self.width:
            raise ConfigError(
                "nothing goes in: give word vectors (a file, or trained from scratch), characters, or ELMo at the input"
            )
        self.reset_parameters()

    def _mixed_width(self, where: str) -> int:
        return cast("Mix", self.mixes[where]).output_width if where in self.mixes else 0

    def reset_parameters(self) -> None:
        """Random values to learn from; the biLM and the mixes have theirs."""
        if self.table is not None:
            nn.init.normal_(self.table.weight, std=self.table.config.width**-0.5)
            if self.table.config.given:
                nn.init.zeros_(self.table.marks)
        if self.chars is not None:
            nn.init.uniform_(self.chars.table, -0.5, 0.5)

    def forward(self, batch: TextBatch) -> Inputs:
        """Vectors for each token, zero where there is none."""
        layers = self._layers(batch)
        parts = []
        if batch.words is not None and batch.places is not None:
            parts.append(F.embedding(batch.places, self._words(batch)))  # (B, T, word width)
        if "input" in self.mixes:
            parts.append(self.mixes["input"](layers))
        x = self.dropout(torch.cat(parts, dim=-1) * batch.mask.unsqueeze(-1))
        late = self.dropout(self.mixes["output"](layers)) if "output" in self.mixes else None
        return Inputs(x, batch.mask, late)

    def _words(self, batch: TextBatch) -> Tensor:
        assert batch.words is not None
        parts = []
        if self.table is not None and batch.words.ids is not None:
            parts.append(self.table(torch.from_numpy(batch.words.ids)))
        if self.chars is not None and batch.words.chars is not None:
            parts.append(self.chars(torch.from_numpy(batch.words.chars)))
        return torch.cat(parts, dim=-1)  # (U, word width)

    def _layers(self, batch: TextBatch) -> Layers | None:
        if batch.layers is not None:
            return Layers(batch.layers, batch.mask)
        if self.tuned is None:
            return None
        if batch.sentences is None or batch.homes is None:  # no text of the batch has a token
            config = self.tuned.network.config
            return Layers(torch.zeros(config.layers + 1, *batch.mask.shape, config.vector_width), batch.mask)
        values = self.tuned(batch.sentences).values  # (L+1, S, T', W)
        flat = values.flatten(1, 2).transpose(0, 1).flatten(1)  # (S * T', (L+1) * W)
        rows = F.embedding(batch.homes, flat)  # (B, T, (L+1) * W)
        rows = rows.unflatten(-1, (len(values), -1)).permute(2, 0, 1, 3)
        return Layers(rows * batch.mask.unsqueeze(-1), batch.mask)

    def l2(self) -> Tensor:
        """What keeps the weights of the mixes small, to add to a loss."""
        terms = [mix.l2(self._l2) for mix in self._all_mixes() if mix.how == "weighted"]
        return torch.stack(terms).sum() if terms else torch.zeros(())

    def _all_mixes(self) -> list[Mix]:
        return [cast("Mix", mix) for mix in self.mixes.values()]

    def learned(self) -> list[LearnedMix]:
        """The weights of each mix that learns some."""
        found = []
        for where, mix in zip(self.mixes, self._all_mixes(), strict=True):
            if mix.how == "weighted":
                found.append(LearnedMix(where, tuple(mix.shares[0].tolist()), mix.scale.item()))
        return found


def chars_config(settings: Settings) -> CharsConfig:
    """The task's own small character CNN."""
    filters = ((CHAR_WINDOW, settings.chars),)
    return CharsConfig(width=CHAR_WIDTH, filters=filters, highways=0, max_characters=CHAR_MOST)

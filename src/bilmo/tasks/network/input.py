"""The input of every task: [word vectors ; characters ; mixed ELMo layers] for each token.

A second mix of the layers can be concatenated to the output of the task's own network.

Knows: TextBatch, Mix, word encoders. Blind to: heads, labels, files.
"""

# B texts, T tokens, U distinct words, L layers, W width of a layer's vector

from __future__ import annotations

from collections.abc import Sequence
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
from bilmo.tasks.network.batch import Batcher, Text, TextBatch
from bilmo.tasks.network.settings import InputSettings

CHAR_WIDTH, CHAR_WINDOW, CHAR_MOST = 16, 3, 50
"""The task's own character CNN: width of a character, characters in a filter, maximum characters of a word."""


@dataclass(frozen=True)
class TaskVectors:
    """The vectors of a batch of texts, as heads take them."""

    vectors: Tensor
    """(B, T, width), zero on padding."""
    mask: Tensor
    """(B, T), True on real tokens."""
    output_mix: Tensor | None
    """(B, T, output_width): the second mix, for the output of the task's own network."""


@dataclass(frozen=True)
class LearnedMix:
    """The learned weights of a weighted mix."""

    where: str
    """input or output"""
    shares: tuple[float, ...]
    """Of layers 0 to L; they add up to 1."""
    scale: float


class TaskInput(nn.Module):
    """Texts to vectors."""

    def __init__(
        self, settings: InputSettings, batcher: Batcher, *, bilm: BiLMConfig | None, table: TableConfig | None
    ) -> None:
        """Create the input.

        bilm: the shape of the biLM that gives the layers; None without ELMo.
        table: the shape of the task's own word vectors; None without them.
        """
        super().__init__()
        self.batcher = batcher
        self.table = WordTable(table) if table else None
        self.chars = CharCNN(chars_config(settings)) if settings.chars else None
        self.tuned = batcher.tuned
        self.mixes = nn.ModuleDict()
        self.width = (table.width if table else 0) + settings.chars
        self.output_width = 0
        """Width of the second mix; 0 where there is none."""
        for where, wanted in (("input", settings.elmo_at_input), ("output", settings.elmo_at_output)):
            if bilm and wanted:
                how = cast("How", settings.mix)
                mix = Mix.for_network(bilm, how)
                self.mixes[where] = mix
                self.width += mix.output_width if where == "input" else 0
                self.output_width += mix.output_width if where == "output" else 0
        self.dropout = nn.Dropout(settings.dropout)
        self._l2 = settings.l2
        if not self.width:
            raise ConfigError(
                "the task has no input: use word vectors (a file, or trained from scratch), characters, "
                "or ELMo at the input"
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Random values to start training from; the biLM and the mixes have their own."""
        if self.table is not None:
            nn.init.normal_(self.table.weight, std=self.table.config.width**-0.5)
            if self.table.config.given:
                nn.init.zeros_(self.table.marks)
        if self.chars is not None:
            nn.init.uniform_(self.chars.table, -0.5, 0.5)

    def forward(self, texts: Sequence[Text]) -> TaskVectors:
        """The vectors of each token, zero on padding."""
        batch = self.batcher.batch(texts)
        layers = Layers(batch.layers, batch.mask) if batch.layers is not None else self._tuned_layers(batch)
        parts = []
        if batch.words is not None and batch.word_rows is not None:
            distinct = []
            if self.table is not None and batch.words.ids is not None:
                distinct.append(self.table(torch.from_numpy(batch.words.ids)))
            if self.chars is not None and batch.words.chars is not None:
                distinct.append(self.chars(torch.from_numpy(batch.words.chars)))
            parts.append(F.embedding(batch.word_rows, torch.cat(distinct, dim=-1)))  # (U, width) to (B, T, width)
        if "input" in self.mixes:
            parts.append(self.mixes["input"](layers))
        vectors = self.dropout(torch.cat(parts, dim=-1) * batch.mask.unsqueeze(-1))
        output_mix = self.dropout(self.mixes["output"](layers)) if "output" in self.mixes else None
        return TaskVectors(vectors, batch.mask, output_mix)

    def _tuned_layers(self, batch: TextBatch) -> Layers | None:
        """The layers of a biLM that is trained with the task; None where there is none."""
        if self.tuned is None:
            return None
        if batch.sentences is None or batch.positions is None:  # no text of the batch has a token
            config = self.tuned.network.config
            return Layers(torch.zeros(config.layers + 1, *batch.mask.shape, config.vector_width), batch.mask)
        values = self.tuned(batch.sentences).values  # (L+1, S, T', W) for S sentences of at most T' tokens
        flat = values.flatten(1, 2).transpose(0, 1).flatten(1)  # (S * T', (L+1) * W)
        rows = F.embedding(batch.positions, flat)  # (B, T, (L+1) * W)
        rows = rows.unflatten(-1, (len(values), -1)).permute(2, 0, 1, 3)
        return Layers(rows * batch.mask.unsqueeze(-1), batch.mask)

    def l2(self) -> Tensor:
        """The penalty on the weights of the mixes, to add to a loss."""
        mixes = (cast("Mix", mix) for mix in self.mixes.values())
        return torch.stack([torch.zeros(()), *(mix.l2(self._l2) for mix in mixes if mix.how == "weighted")]).sum()

    def learned_mixes(self) -> list[LearnedMix]:
        """The weights of each weighted mix."""
        mixes = [(where, cast("Mix", mix)) for where, mix in self.mixes.items()]
        return [
            LearnedMix(where, tuple(mix.shares[0].tolist()), mix.scale.item())
            for where, mix in mixes
            if mix.how == "weighted"
        ]


def chars_config(settings: InputSettings) -> CharsConfig:
    """The shape of the task's own character CNN."""
    filters = ((CHAR_WINDOW, settings.chars),)
    return CharsConfig(width=CHAR_WIDTH, filters=filters, highways=0, max_characters=CHAR_MOST)

"""A model and its mixes as one torch module, to be part of a larger network.

Knows: the network, Indexer, Mix. Blind to: files, numpy results.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor, nn

from bilmo.errors import TextError
from bilmo.ids.batch import Indexer, Sentence, listed
from bilmo.net.bilm import BiLM
from bilmo.net.mix import Mix
from bilmo.net.state import State


class ElmoModule(nn.Module):
    """Token lists in, mixed vectors (B, T, width) and a mask (B, T) out; T is the longest sentence."""

    def __init__(self, network: BiLM, indexer: Indexer, start: State, mixes: list[Mix], *, tune: bool) -> None:
        """`start` is the state of one row that every sentence begins with."""
        super().__init__()
        self.network = network
        self.mixes = nn.ModuleList(mixes)
        self.tune = tune
        self.output_width = mixes[0].output_width
        self._indexer = indexer
        self._start = start
        if not tune:
            network.requires_grad_(False)

    def forward(self, sentences: Iterable[Sentence]) -> tuple[Tensor | tuple[Tensor, ...], Tensor]:
        """Vectors and mask; with several mixes, a tuple of vectors and the mask."""
        sentences = listed(sentences)
        if not sentences:
            raise TextError("a batch without sentences has no vectors; pass at least one list of words")
        batch = self._indexer.batch(sentences)
        device = next(self.network.parameters()).device
        start = self._start.to(device).expand(len(sentences))
        with torch.set_grad_enabled(self.tune and torch.is_grad_enabled()):
            layers, _ = self.network(batch, start)
        inside = layers.inside()
        mixed = []
        for mix in cast("Iterable[Mix]", self.mixes):
            # AllenNLP's norm counts the boundaries among the tokens, so they are taken off after the mix.
            if mix.norm == "allennlp":
                mixed.append(mix(layers)[:, 1:-1] * inside.mask.unsqueeze(-1))
            else:
                mixed.append(mix(inside))
        return (mixed[0] if len(mixed) == 1 else tuple(mixed)), inside.mask

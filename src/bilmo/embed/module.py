"""A model and its mixes as one torch module, to be part of a larger network.

Knows: the network, Indexer, Mix. Blind to: files, numpy results.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor, nn

from bilmo.errors import TextError
from bilmo.ids.batch import Batch, Indexer, Sentence, listed
from bilmo.net.bilm import BiLM
from bilmo.net.layers import Layers, PackedLayers
from bilmo.net.mix import Mix
from bilmo.net.start import StartState
from bilmo.net.state import State


class ElmoModule(nn.Module):
    """Token lists in, mixed vectors (B, T, width) and a mask (B, T) out; T is the longest sentence.

    The module owns its network. Like any torch module it can be moved, converted, copied, saved and loaded; the
    network is trained if its parameters require gradients.
    """

    def __init__(self, network: BiLM, indexer: Indexer, start: State, mixes: list[Mix]) -> None:
        """`start` is the state of one row that every sentence starts from."""
        super().__init__()
        self.network = network
        self.mixes = nn.ModuleList(mixes)
        self.output_width = mixes[0].output_width
        self._indexer = indexer
        self.start = StartState(start)  # not saved: it belongs to the model, as the indexer does

    def extra_repr(self) -> str:
        """The width of its vectors, and whether the network is trained, for `repr`."""
        trained = any(parameter.requires_grad for parameter in self.network.parameters())
        return f"output_width={self.output_width}, mixes={len(self.mixes)}, tune={trained}"

    def forward(self, sentences: Iterable[Sentence]) -> tuple[Tensor | tuple[Tensor, ...], Tensor]:
        """Vectors and mask; with several mixes, a tuple of vectors and the mask."""
        layers = self.layers(sentences)
        inside = layers.inside()
        mixed = []
        for mix in cast("Iterable[Mix]", self.mixes):
            # AllenNLP's norm counts the boundaries among the tokens, so they are removed after the mix.
            if mix.norm == "allennlp":
                mixed.append(mix(layers)[:, 1:-1] * inside.mask.unsqueeze(-1))
            else:
                mixed.append(mix(inside))
        return (mixed[0] if len(mixed) == 1 else tuple(mixed)), inside.mask

    def layers(self, sentences: Iterable[Sentence]) -> Layers:
        """All layers, boundaries included; with gradients only if the network is trained."""
        sentences = listed(sentences)
        if not sentences:
            raise TextError("a batch without sentences has no vectors; pass at least one list of words")
        return self.batch_layers(self._indexer.batch(sentences))

    def batch_layers(self, batch: Batch) -> Layers:
        """As `layers`, for words that are already ids."""
        trained = any(parameter.requires_grad for parameter in self.network.parameters())
        with torch.set_grad_enabled(trained and torch.is_grad_enabled()):
            packed: PackedLayers = self.network(batch, self.start(len(batch.lengths)))[0]
            return packed.padded()

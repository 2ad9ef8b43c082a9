"""A biLM that is trained together with a task.

Knows: Bundle, the network. Blind to: files, heads, data.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor, nn

from bilmo.embed.embedder import settled
from bilmo.ids.batch import Batch, Sentence
from bilmo.net.layers import Layers, PackedLayers
from bilmo.net.state import State
from bilmo.store.bundle import Bundle


class Tuned(nn.Module):
    """A copy of the network that is trained with the task; every sentence starts from the model's settled state."""

    def __init__(self, bundle: Bundle) -> None:
        super().__init__()
        self.bundle = settled(bundle)
        self.network = copy.deepcopy(bundle.network()).train()
        self.indexer = bundle.indexer()
        assert self.bundle.start is not None
        self._start: State = self.bundle.start

    def batch(self, sentences: Sequence[Sentence]) -> Batch:
        """Sentences as a batch for the network."""
        return self.indexer.batch(sentences)

    def forward(self, batch: Batch) -> Layers:
        """A batch to its layers, without boundaries."""
        start = self._start.expand(len(batch.lengths))
        layers: PackedLayers = self.network(batch, start, separate_graphs=True)[0]
        return layers.padded().inside()

    def learned(self) -> Bundle:
        """The model with its present weights and the start that they were trained with, without a softmax."""
        weights: dict[str, Tensor] = {name: value.detach().clone() for name, value in self.network.state_dict().items()}
        return replace(self.bundle, weights=weights, layout="tuned with a task", card="")

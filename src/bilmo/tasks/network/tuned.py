"""The biLM that a task stands on: which one it is, and one that is trained along with the task.

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
    """A copy of the network that learns with the task; every sentence starts from the model's settled state."""

    def __init__(self, bundle: Bundle) -> None:
        super().__init__()
        self.bundle = settled(bundle)
        self.network = copy.deepcopy(bundle.network()).train()
        self.indexer = bundle.indexer()
        assert self.bundle.start is not None
        self._start: State = self.bundle.start

    def batch(self, sentences: Sequence[Sentence]) -> Batch:
        """Sentences as the network wants them."""
        return self.indexer.batch(sentences)

    def forward(self, batch: Batch) -> Layers:
        """A batch to its layers, boundaries left out."""
        start = self._start.expand(len(batch.lengths))
        layers: PackedLayers = self.network(batch, start, separate_graphs=True)[0]
        return layers.padded().inside()

    def learned(self) -> Bundle:
        """The model with the weights that it has now, and the start that they learned with; its softmax is left out."""
        weights: dict[str, Tensor] = {name: value.detach().clone() for name, value in self.network.state_dict().items()}
        return replace(self.bundle, weights=weights, layout="tuned with a task", card="")

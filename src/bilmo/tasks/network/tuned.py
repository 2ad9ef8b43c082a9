"""A biLM that is trained together with a task.

Knows: Bundle, the network. Blind to: files, heads, data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor, nn

from bilmo.ids.batch import Batch, Sentence
from bilmo.net.layers import Layers, PackedLayers
from bilmo.net.start import StartState
from bilmo.net.state import State
from bilmo.store.bundle import Bundle


class Tuned(nn.Module):
    """A copy of the network that is trained with the task."""

    def __init__(self, bundle: Bundle, start: State) -> None:
        """`start` is the state of one row that every sentence starts from."""
        super().__init__()
        self.bundle = replace(bundle, start=start)
        self.network = bundle.network().train()
        self.indexer = bundle.indexer()
        self.start = StartState(start)

    def batch(self, sentences: Sequence[Sentence]) -> Batch:
        """Sentences as a batch for the network."""
        return self.indexer.batch(sentences)

    def forward(self, batch: Batch) -> Layers:
        """A batch to its layers, without boundaries."""
        layers: PackedLayers = self.network(batch, self.start(len(batch.lengths)), separate_graphs=True)[0]
        return layers.padded().inside()

    def learned(self) -> Bundle:
        """The model with its present weights and the start that they were trained with, without a softmax."""
        weights: dict[str, Tensor] = {name: value.detach().clone() for name, value in self.network.state_dict().items()}
        return replace(self.bundle, weights=weights, layout="tuned with a task", card="")

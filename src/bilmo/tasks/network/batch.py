"""Texts to the tensors that the input of a task takes.

A text is a list of sentences. The biLM reads each sentence alone; the task sees all tokens of a text in one row.

Knows: Indexer, LayerStore. Blind to: heads, labels.
"""

# B texts, T tokens of the longest, U distinct words, L layers, W width of a layer's vector

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from bilmo.ids.batch import Batch, Indexer, Sentence, Words
from bilmo.tasks.network.layer_store import LayerStore
from bilmo.tasks.network.tuned import Tuned

Text = Sequence[Sentence]
"""The sentences of one text."""


class Item(Protocol):
    """One example as a head takes it. Each task has its own class, with whatever its head needs."""

    @property
    def texts(self) -> Sequence[Text]:
        """All texts of the example: one, or two for a pair."""


def tokens_of(item: Item) -> int:
    """The number of tokens in all texts of an example."""
    return sum(len(sentence) for text in item.texts for sentence in text)


@dataclass(frozen=True)
class TextBatch:
    """Texts as padded rows; parts that a task does not use are None."""

    mask: Tensor
    """(B, T), True on real tokens; T is at least 1."""
    layers: Tensor | None = None
    """(L+1, B, T, W) of a frozen biLM."""
    words: Words | None = None
    """The distinct words, for the task's own word vectors and characters."""
    word_rows: Tensor | None = None
    """(B, T): the row of each token in `words`."""
    sentences: Batch | None = None
    """All sentences of all texts, for a biLM that is trained with the task."""
    positions: Tensor | None = None
    """(B, T): the position of each token in the flattened rows of `sentences`, boundaries left out."""


@dataclass(frozen=True)
class Batcher:
    """Makes batches from the sources that a task uses."""

    indexer: Indexer | None = None
    """For the task's own word vectors and characters."""
    store: LayerStore | None = None
    """For a frozen biLM."""
    tuned: Tuned | None = None
    """For a biLM that is trained with the task."""

    def batch(self, texts: Sequence[Text]) -> TextBatch:
        """A batch of any texts, empty ones included."""
        rows = [[token for sentence in text for token in sentence] for text in texts]
        lengths = np.array([len(row) for row in rows])
        mask = np.arange(max(1, lengths.max(initial=0))) < lengths[:, None]  # (B, T)
        sentences = [sentence for text in texts for sentence in text]
        words = word_rows = layers = batch = positions = None
        if self.indexer:
            indexed = self.indexer.batch(rows)
            numbers = np.zeros(mask.shape, dtype=np.int64)
            numbers[:, : indexed.forward.shape[1] - 2] = indexed.forward[:, 1:-1]  # without the boundaries
            words, word_rows = indexed.words, torch.from_numpy(numbers)
        if self.store:
            # The tokens under the mask, read row by row, are those of all sentences in order.
            values = np.zeros((*mask.shape, *self.store.shape), dtype=np.float16)  # (B, T, L+1, W)
            if sentences:
                values[mask] = np.concatenate(self.store.layers(sentences))
            layers = torch.from_numpy(values).permute(2, 0, 1, 3).float()  # (L+1, B, T, W)
        elif self.tuned and lengths.any():
            batch = self.tuned.batch(sentences)
            longest = int(batch.lengths.max()) - 2
            found = np.zeros(mask.shape, dtype=np.int64)
            found[mask] = [n * longest + t for n, sentence in enumerate(sentences) for t in range(len(sentence))]
            positions = torch.from_numpy(found)
        return TextBatch(torch.from_numpy(mask), layers, words, word_rows, batch, positions)

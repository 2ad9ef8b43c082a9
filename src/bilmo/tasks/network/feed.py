"""Texts to the tensors that the way in wants.

A text is a list of sentences. The biLM reads each sentence alone; a task sees their tokens one after the other.

Knows: Indexer, LayerStore. Blind to: heads, labels.
"""

# B texts, T tokens of the longest, U distinct words, L layers, W width of a layer's vector

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bilmo.ids.batch import Batch, Indexer, Sentence, Words
from bilmo.tasks.network.layer_store import LayerStore
from bilmo.tasks.network.tuned import Tuned

Text = Sequence[Sentence]
"""Its sentences."""


def length(text: Text) -> int:
    """Tokens of a text."""
    return sum(map(len, text))


@dataclass(frozen=True)
class TextBatch:
    """Texts side by side; what a task does not use is None."""

    mask: Tensor
    """(B, T), True on real tokens; T is at least 1."""
    layers: Tensor | None = None
    """(L+1, B, T, W) of a frozen biLM."""
    words: Words | None = None
    """The distinct words, for word vectors and characters of the task's own."""
    places: Tensor | None = None
    """(B, T) into `words`."""
    sentences: Batch | None = None
    """All sentences of all texts, for a biLM that learns."""
    homes: Tensor | None = None
    """(B, T): where each token stands in the flat rows of `sentences`, boundaries left out."""


@dataclass(frozen=True)
class Feed:
    """What a task feeds on."""

    indexer: Indexer | None = None
    """For word vectors and characters of the task's own."""
    store: LayerStore | None = None
    """For a frozen biLM."""
    tuned: Tuned | None = None
    """For one that learns."""

    def batch(self, texts: Sequence[Text]) -> TextBatch:
        """Any texts, empty ones too."""
        lengths = np.array([length(text) for text in texts])
        mask = np.arange(max(1, lengths.max(initial=0))) < lengths[:, None]  # (B, T)
        words = places = layers = sentences = homes = None
        if self.indexer:
            words, places = self._words(texts, mask.shape)
        if self.store:
            layers = self._layers(self.store, texts, mask.shape)
        elif self.tuned and lengths.any():
            sentences = self.tuned.batch([sentence for text in texts for sentence in text])
            homes = _homes(texts, mask.shape, int(sentences.lengths.max()) - 2)
        return TextBatch(torch.from_numpy(mask), layers, words, places, sentences, homes)

    def _words(self, texts: Sequence[Text], shape: tuple[int, ...]) -> tuple[Words, Tensor]:
        assert self.indexer is not None
        keys, found = self.indexer.places([[token for s in text for token in s] for text in texts])
        places = np.zeros(shape, dtype=np.int64)
        places[:, : found.forward.shape[1] - 2] = found.forward[:, 1:-1]  # without the boundaries
        return self.indexer.words(keys), torch.from_numpy(places)

    def _layers(self, store: LayerStore, texts: Sequence[Text], shape: tuple[int, ...]) -> Tensor:
        values = np.zeros((*shape, *store.shape), dtype=np.float16)  # (B, T, L+1, W)
        found = iter(store.layers([sentence for text in texts for sentence in text]))
        for row, text in enumerate(texts):
            at = 0
            for sentence in text:
                values[row, at : at + len(sentence)] = next(found)
                at += len(sentence)
        return torch.from_numpy(values).permute(2, 0, 1, 3).float()  # (L+1, B, T, W)


def _homes(texts: Sequence[Text], shape: tuple[int, ...], longest: int) -> Tensor:
    homes = np.zeros(shape, dtype=np.int64)
    number = 0
    for row, text in enumerate(texts):
        at = 0
        for sentence in text:
            homes[row, at : at + len(sentence)] = number * longest + np.arange(len(sentence))
            at += len(sentence)
            number += 1
    return torch.from_numpy(homes)

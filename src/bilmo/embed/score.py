"""How well a model predicts text: perplexity by the full softmax, every word counted, nothing dropped.

Knows: Embedder. Blind to: where the text came from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from bilmo.embed.embedder import Embedder
from bilmo.ids.batch import Sentence

AT_ONCE = 256
"""Sentences scored at a time."""


@dataclass(frozen=True)
class Score:
    """Losses in nats, summed over all that was predicted: the words, and one boundary a sentence."""

    losses: dict[str, float]
    """Direction to its sum."""
    sentences: int
    words: int
    unknown: int
    """Words that are not in the vocabulary; what is predicted for them is `<UNK>`."""

    @property
    def perplexity(self) -> dict[str, float]:
        """exp of the mean loss of each direction, and `mean`: exp of the mean over both."""
        each = {name: loss / (self.words + self.sentences) for name, loss in self.losses.items()}
        return {name: math.exp(loss) for name, loss in (each | {"mean": sum(each.values()) / len(each)}).items()}


def score(elmo: Embedder, sentences: Iterable[Sentence]) -> Score:
    """Score any amount of text; with start="carry" each sentence goes on from the one before."""
    size = 1 if elmo.start == "carry" else AT_ONCE
    rest = iter(sentences)
    totals = np.zeros(len(elmo.config.directions))
    count = words = unknown = 0
    while some := list(islice(rest, size)):
        totals += sum(-row.astype(np.float64).sum(axis=1) for row in elmo.log_probs(some))
        count += len(some)
        words += sum(map(len, some))
        vocab = elmo.bundle.vocab
        unknown += sum(word not in vocab for sentence in some for word in sentence) if vocab else 0
    losses = {str(name): float(total) for name, total in zip(elmo.config.directions, totals, strict=True)}
    return Score(losses, sentences=count, words=words, unknown=unknown)

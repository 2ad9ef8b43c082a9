"""How well a model predicts text: perplexity by the full softmax, over every word.

Knows: Embedder. Blind to: where the text comes from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from bilmo.embed.embedder import Embedder
from bilmo.ids.batch import Sentence

BATCH_SENTENCES = 256
"""Sentences scored at a time."""


@dataclass(frozen=True)
class Perplexity:
    """Losses in nats, summed over all predictions: the words, and one boundary per sentence."""

    losses: dict[str, float]
    """The sum of each direction."""
    sentences: int
    words: int
    unknown: int
    """Number of words that are not in the vocabulary; `<UNK>` is predicted in their place."""
    unknown_loss: float
    """Loss of the unknown words, mean of both directions."""
    lang: str = ""
    """How the text was split into tokens; empty for sentences that are lists of tokens."""

    @property
    def perplexity(self) -> dict[str, float]:
        """exp of the mean loss of each direction; and `mean`, exp of the mean over both."""
        each = {name: loss / (self.words + self.sentences) for name, loss in self.losses.items()}
        return {name: math.exp(loss) for name, loss in (each | {"mean": sum(each.values()) / len(each)}).items()}

    @property
    def known(self) -> float:
        """The mean perplexity over known words only: how well a model predicts `<UNK>` says little."""
        mean = sum(self.losses.values()) / len(self.losses)
        return math.exp((mean - self.unknown_loss) / (self.words + self.sentences - self.unknown))


def score(elmo: Embedder, sentences: Iterable[Sentence], *, lang: str = "") -> Perplexity:
    """Score any amount of text; with start="carry" each sentence continues from the one before.

    lang: how the sentences were split.
    """
    size = 1 if elmo.start == "carry" else BATCH_SENTENCES
    rest = iter(sentences)
    directions = elmo.config.directions
    totals = np.zeros(len(directions))
    count = words = unknown = 0
    unknown_loss = 0.0
    while some := list(islice(rest, size)):
        rows = elmo.log_probs(some)
        vocab = elmo.bundle.vocab
        assert vocab is not None, "log_probs needs a vocabulary too"
        for sentence, row in zip(some, rows, strict=True):
            losses = -row.astype(np.float64)
            totals += losses.sum(axis=1)
            is_unknown = np.array(vocab.ids(sentence), dtype=np.int64) == vocab.unknown
            for direction, loss in zip(directions, losses, strict=True):
                of_words = loss[:-1] if direction == "forward" else loss[1:]
                unknown_loss += float(of_words[is_unknown].sum()) / len(directions)
            unknown += int(is_unknown.sum())
        count += len(some)
        words += sum(map(len, some))
    found = {str(name): float(total) for name, total in zip(directions, totals, strict=True)}
    return Perplexity(found, sentences=count, words=words, unknown=unknown, unknown_loss=unknown_loss, lang=lang)

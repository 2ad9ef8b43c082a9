"""How well a model predicts text: perplexity by the full softmax, over every word.

Knows: Embedder. Blind to: where the text comes from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from bilmo.embed.embedder import Embedder
from bilmo.ids.batch import Sentence
from bilmo.net.softmax import perplexity

BATCH_SENTENCES = 256
"""Sentences scored at a time."""
MANY_UNKNOWN = 0.3
"""Share of unknown words above which a perplexity says little."""


@dataclass(frozen=True)
class Perplexity:
    """Losses in nats, summed over all predictions: the words, and one boundary per sentence."""

    losses: dict[str, float]
    """The sum of each direction."""
    sentences: int
    words: int
    unknown: int
    """Number of words that are not in the vocabulary; `<UNK>` is predicted in their place."""
    unknown_losses: dict[str, float]
    """The part of the losses that belongs to unknown words."""
    lang: str = ""
    """How the text was split into tokens; empty for sentences that are lists of tokens."""

    @property
    def perplexity(self) -> dict[str, float]:
        """exp of the mean loss of each direction; and `mean`, exp of the mean over both."""
        return _perplexities(self.losses, self.words + self.sentences)

    @property
    def known(self) -> dict[str, float]:
        """The same over known words only, because `<UNK>` stands for many words and is easy to predict."""
        losses = {name: loss - self.unknown_losses[name] for name, loss in self.losses.items()}
        return _perplexities(losses, self.words + self.sentences - self.unknown)

    @property
    def warning(self) -> str | None:
        """A warning about the probable cause if many words are unknown."""
        share = self.unknown / max(1, self.words)
        if share <= MANY_UNKNOWN:
            return None
        return (
            f"{share:.0%} of the words are not in the vocabulary of the model. They all count as `<UNK>`, which is "
            "easy to predict, so the perplexity of all words says little. Check that the text is in the language of "
            "the model, and that it is split as the training text was (lang)."
        )


def _perplexities(losses: dict[str, float], count: int) -> dict[str, float]:
    each = {name: loss / count for name, loss in losses.items()}
    return {name: perplexity(loss) for name, loss in (each | {"mean": sum(each.values()) / len(each)}).items()}


def score(elmo: Embedder, sentences: Iterable[Sentence], *, lang: str = "") -> Perplexity:
    """Score any amount of text; with start="carry" each sentence continues from the one before.

    lang: how the sentences were split.
    """
    size = 1 if elmo.start == "carry" else BATCH_SENTENCES
    rest = iter(sentences)
    directions = elmo.config.directions
    totals = np.zeros(len(directions))
    count = words = unknown = 0
    unknown_losses = dict.fromkeys(map(str, directions), 0.0)
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
                unknown_losses[direction] += float(of_words[is_unknown].sum())
            unknown += int(is_unknown.sum())
        count += len(some)
        words += sum(map(len, some))
    found = {str(name): float(total) for name, total in zip(directions, totals, strict=True)}
    return Perplexity(found, sentences=count, words=words, unknown=unknown, unknown_losses=unknown_losses, lang=lang)

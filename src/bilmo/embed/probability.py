"""Log-probabilities of the words and sentences of a text, in both directions.

Knows: Embedder. Blind to: where the text comes from, where the numbers go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from bilmo.embed.embedder import Embedder
from bilmo.embed.inputs import Item
from bilmo.embed.runner import Vectors
from bilmo.ids.batch import Sentence

BATCH_SENTENCES = 256
"""Sentences scored at a time."""


@dataclass(frozen=True)
class ScoredSentence:
    """Natural logarithms of the probabilities of one sentence."""

    line: int
    """Number of the input line, from 1."""
    sentence: int
    """Number of the sentence in its line, from 1."""
    tokens: list[str]
    unknown: list[bool]
    """Which tokens are not in the vocabulary; `<UNK>` is predicted in their place."""
    words: dict[str, Vectors]
    """Of each direction, one number per token."""
    totals: dict[str, float]
    """Of each direction, the sum over all tokens and the boundary at which the direction ends."""


def scored(elmo: Embedder, items: Iterable[Item]) -> Iterator[ScoredSentence]:
    """Score any number of texts, or sentences as lists of tokens, in their order; blank lines have none."""
    size = 1 if elmo.start == "carry" else BATCH_SENTENCES
    numbered = (
        (line, number, sentence)
        for line, item in enumerate(items, start=1)
        for number, sentence in enumerate(filter(None, elmo.sentences(item)), start=1)
    )
    while some := list(islice(numbered, size)):
        rows = elmo.log_probs([sentence for _, _, sentence in some])
        for (line, number, sentence), row in zip(some, rows, strict=True):
            yield _scored(elmo, line, number, sentence, row)


def _scored(elmo: Embedder, line: int, number: int, sentence: Sentence, row: Vectors) -> ScoredSentence:
    vocab = elmo.bundle.vocab
    assert vocab is not None, "log_probs needs a vocabulary too"
    rows = dict(zip(map(str, elmo.config.directions), row, strict=True))
    return ScoredSentence(
        line,
        number,
        list(sentence),
        [id == vocab.unknown for id in vocab.ids(sentence)],
        # forward predicts the end after the last word, backward the beginning before the first one
        {name: logs[:-1] if name == "forward" else logs[1:] for name, logs in rows.items()},
        {name: float(logs.sum(dtype=np.float64)) for name, logs in rows.items()},
    )

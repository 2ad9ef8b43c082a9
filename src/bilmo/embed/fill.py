"""Words that fit one place of a sentence: candidates from both directions of the language model.

Knows: LoadedModel. Blind to: the command line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bilmo.embed.loaded import LoadedModel
from bilmo.errors import ConfigError
from bilmo.ids.vocab import Vocab
from bilmo.text.brackets import marked

PRIOR = 1.0
"""How much of the prior is taken out when the directions are combined; benchmarks/fill.py compares the choices."""
OFFSET = 2.7
"""Mandelbrot's shift of the ranks in Zipf's law, which flattens it for the most frequent words."""

LogProbs = NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """A word of the vocabulary, and how likely it is at the place."""

    word: str
    probability: float
    """Probability by both directions together; the probabilities of all words add up to 1."""
    forward: float | None
    """Probability given the words before the place; None if the model has only the other direction."""
    backward: float | None
    """Probability given the words after the place; None if the model has only the other direction."""


@dataclass(frozen=True)
class Filled:
    """The candidates for the place of a word."""

    sentence: list[str]
    position: int
    """Position of the word in the sentence, from 0."""
    candidates: list[Candidate]
    """The most likely words, the best one first."""
    actual: Candidate
    """The word that was given. If it is not in the vocabulary, the probabilities are those of `<UNK>`."""
    rank: int | None
    """Rank of the given word among all words; None if it is not in the vocabulary."""


def fill(elmo: LoadedModel, text: str, topn: int) -> Filled:
    """The most likely words in place of the word in square brackets."""
    return fill_at(elmo, *marked(elmo.split, text), topn)


def fill_at(elmo: LoadedModel, sentence: list[str], position: int, topn: int) -> Filled:
    """The most likely words in place of one word of a sentence."""
    if topn < 1:
        raise ConfigError(f"topn is {topn}; it must be 1 or more")
    logs = elmo.log_probs_at(sentence, position).astype(np.float64)
    vocab = elmo.bundle.vocab
    assert vocab is not None, "log_probs_at needs a vocabulary too"
    together = combined(logs, vocab)
    rows = dict(zip(elmo.config.directions, np.exp(logs), strict=True))

    def candidate(id: int, word: str) -> Candidate:
        each = {name: float(rows[name][id]) if name in rows else None for name in ("forward", "backward")}
        return Candidate(word, float(np.exp(together[id])), **each)

    words = together.copy()
    words[[vocab.begin, vocab.end, vocab.unknown]] = -np.inf
    best = np.argsort(-words, kind="stable")[: min(topn, len(vocab) - 3)]
    (given,) = vocab.ids([sentence[position]])
    return Filled(
        sentence,
        position,
        [candidate(int(id), vocab.words[id]) for id in best],
        candidate(given, sentence[position]),
        None if given == vocab.unknown else 1 + int((words > words[given]).sum()),
    )


def combined(logs: LogProbs, vocab: Vocab, prior: float = PRIOR) -> LogProbs:
    """Log-probability of every word, (V,), from the rows of the directions, (2, V).

    Each direction already knows how frequent a word is. If their logarithms were just added, frequency would count
    twice, so one prior is subtracted: that of Zipf's law, by the rank of a word in the vocabulary. No word of a
    sentence is a boundary, so boundaries get probability 0.
    """
    total = logs.sum(axis=0)
    if len(logs) > 1:
        total += prior * np.log(OFFSET + np.arange(len(vocab)))  # minus log(1 / (OFFSET + rank))
    total[[vocab.begin, vocab.end]] = -np.inf
    return np.asarray(total - np.logaddexp.reduce(total))

"""Beam search over many sources at once. A finished result is set aside, and no step is computed for it again.

The results of a source do not depend on the others of its batch. A beam as wide as the number of all possible results
finds the best one.

Knows: torch. Blind to: the network, words.
"""

# N partial results of all sources, V words, S source tokens

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

MINUS = float("-inf")


class Stepper(Protocol):
    """A network that writes one word after the other. Its rows are partial results; at first, one for each source."""

    def step(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """The last word of each row (N,) to log-probabilities of the next (N, V) and its attention (N, S).

        The search overwrites the log-probabilities.
        """

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows, some of them perhaps several times."""


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How to search."""

    beam: int = 5
    best: int = 1
    """The number of results for each source."""
    shortest: int = 0
    length_penalty: float = 1.0
    coverage_penalty: float = 0.0

    def score(self, log_probability: float, words: int, attention: NDArray[np.float32]) -> float:
        """The score of a result, as in Wu et al. (2016). `words` includes the end; attention is (words, S)."""
        score = log_probability / self.length(words)
        if self.coverage_penalty and attention.shape[1]:
            seen = np.clip(attention.sum(axis=0), 1e-9, 1.0)
            score += self.coverage_penalty * float(np.log(seen).sum())
        return score

    def length(self, words: int) -> float:
        """The divisor that makes log-probabilities of results of different lengths comparable."""
        return float(((5 + words) / 6) ** self.length_penalty)


@dataclass(frozen=True)
class Found:
    """One result."""

    words: list[int]
    """Without the end."""
    log_probabilities: list[float]
    """Of each word and of the end."""
    attention: NDArray[np.float32]
    """(words and end, S)."""
    score: float

    @property
    def log_probability(self) -> float:
        """The log-probability of the whole result."""
        return math.fsum(self.log_probabilities)


@dataclass(frozen=True)
class _Partial:
    """The last word of a partial result, and the words before it."""

    before: _Partial | None
    word: int
    log_probability: float
    total: float
    """Log-probability of all words up to this one."""
    attention: NDArray[np.float32]
    """(S,)"""
    row: int
    """The row of the stepper that it continues."""


@torch.no_grad()
def search(
    stepper: Stepper, longest: Sequence[int], options: SearchOptions, *, end: int, banned: Sequence[int] = ()
) -> list[list[Found]]:
    """The best results for each source, best first.

    longest: for each source the maximum number of words.
    end: the word that ends a result; it is also the word before the first one.
    banned: words that are never written.
    """
    beam = max(options.beam, options.best)
    alive: list[list[_Partial | None]] = [[None] for _ in longest]  # for each source its partial results
    done: list[list[Found]] = [[] for _ in longest]
    last = torch.full((len(longest),), end)
    written = 0
    while len(last):
        log_probs, attention = stepper.step(last)  # (N, V), (N, S)
        log_probs[:, list(banned)] = MINUS
        for row, source in enumerate(source for source, some in enumerate(alive) for _ in some):
            if written >= longest[source]:
                value = log_probs[row, end].item()
                log_probs[row] = MINUS
                log_probs[row, end] = value
            elif written < options.shortest:
                log_probs[row, end] = MINUS
        values, words = (found.tolist() for found in log_probs.topk(min(beam, log_probs.shape[1])))
        shown = attention.numpy()
        kept: list[tuple[int, int]] = []  # row and next word
        first = 0  # the row of the first partial result of a source
        for source, some in enumerate(alive):
            candidates = [
                _Partial(before, word, value, _total(before) + value, shown[first + k], first + k)
                for k, before in enumerate(some)
                for word, value in zip(words[first + k], values[first + k], strict=True)
                if value > MINUS
            ]
            first += len(some)
            # Each finished result takes one place of the beam.
            best = sorted(candidates, key=lambda one: -one.total)[: beam - len(done[source])]
            done[source] += [_found(one, options) for one in best if one.word == end]
            going = [one for one in best if one.word != end]
            alive[source] = [*going] if _worth(going, done[source], longest[source], options, beam) else []
            kept += [(one.row, one.word) for one in alive[source] if one is not None]
        written += 1
        stepper.keep(torch.tensor([row for row, _ in kept], dtype=torch.long))
        last = torch.tensor([word for _, word in kept], dtype=torch.long)
    return [sorted(some, key=lambda found: -found.score)[: options.best] for some in done]


def _total(partial: _Partial | None) -> float:
    return partial.total if partial is not None else 0.0


def _worth(alive: Sequence[_Partial], done: Sequence[Found], longest: int, options: SearchOptions, beam: int) -> bool:
    """Whether partial results of a source may still become some of the best.

    Words only lower a log-probability, so it is at best divided by the length of the longest result.
    """
    if not alive or len(done) >= beam:
        return False
    if len(done) < options.best:
        return True
    worst = sorted((found.score for found in done), reverse=True)[options.best - 1]
    return max(one.total for one in alive) / options.length(longest + 1) > worst


def _found(last: _Partial, options: SearchOptions) -> Found:
    """The result that ends here."""
    path: list[_Partial] = []
    at: _Partial | None = last
    while at is not None:
        path.append(at)
        at = at.before
    path.reverse()
    attention = np.stack([one.attention for one in path])
    score = options.score(last.total, len(path), attention)
    return Found([one.word for one in path[:-1]], [one.log_probability for one in path], attention, score)

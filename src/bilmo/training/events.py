"""The events of a training run.

Knows: the facts of a corpus, the progress of a run. Blind to: how a run works, who reads the events.
"""

from __future__ import annotations

from dataclasses import dataclass

from bilmo.training.checkpoint import Progress
from bilmo.training.corpus import Facts


@dataclass(frozen=True)
class Cost:
    """What a run will take, estimated from a trial step and a trial evaluation."""

    seconds: float
    """Until the end of the run."""
    memory: int
    """Bytes; 0 if unknown."""


@dataclass(frozen=True)
class Ready:
    """Before the first step."""

    corpus: Facts
    vocab: int
    """Words that can be predicted."""
    unknown: float
    """Share of the held-out words that are not in the vocabulary."""
    left_out: int
    """Distinct words of the training text that are not in the vocabulary."""
    parameters: int
    resumed: bool
    cost: Cost
    notes: list[str]
    """What a user should know about the run."""


@dataclass(frozen=True)
class Step:
    """One update of the weights."""

    number: int
    epoch: int
    done: float
    """Share of the run."""
    loss: float
    """Nats per word, mean of both directions."""
    rate: float
    words: int
    seconds: float
    skipped: bool = False
    """The loss exploded, so the weights were not changed."""


@dataclass(frozen=True)
class Evaluation:
    """Perplexity on held-out text, by the full softmax."""

    number: int
    """Of the step before it."""
    forward: float
    backward: float
    mean: float
    """exp of the mean of both losses."""
    known: float
    """The same over known words only: a small vocabulary makes `mean` look better than it is."""
    words: int
    """Words predicted, including boundaries."""
    best: bool
    """Better than all evaluations before."""


@dataclass(frozen=True)
class Finished:
    """The end of the run, or of one that was complete before."""

    progress: Progress
    reason: str


Event = Ready | Step | Evaluation | Finished

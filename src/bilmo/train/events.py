"""What a training run tells while it runs.

Knows: what a corpus and a run's progress are. Blind to: how a run works, and who listens.
"""

from __future__ import annotations

from dataclasses import dataclass

from bilmo.train.checkpoint import Progress
from bilmo.train.corpus import Facts


@dataclass(frozen=True)
class Cost:
    """What a run will take, told from a step and a look that were tried."""

    seconds: float
    """Until its end, about."""
    memory: int
    """Bytes, about."""


@dataclass(frozen=True)
class Prepared:
    """Before the first step."""

    corpus: Facts
    vocab: int
    unknown: float
    """Share of the held-out words that are not in the vocabulary."""
    left_out: int
    """Distinct words of the training text that are not in the vocabulary."""
    parameters: int
    lang: str
    resumed: bool
    cost: Cost


@dataclass(frozen=True)
class Step:
    """One update of the weights."""

    number: int
    epoch: int
    done: float
    """Share of the run."""
    loss: float
    """Nats a word, mean of both directions."""
    rate: float
    words: int
    seconds: float
    skipped: bool = False


@dataclass(frozen=True)
class Look:
    """A look at held-out text, by the full softmax."""

    number: int
    forward: float
    """Perplexity."""
    backward: float
    mean: float
    """exp of the mean of both losses."""
    words: int
    """That were predicted, boundaries among them."""
    best: bool


@dataclass(frozen=True)
class Finished:
    """The end, or what was found when the run was over already."""

    progress: Progress
    why: str


Event = Prepared | Step | Look | Finished

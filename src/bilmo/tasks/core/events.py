"""The progress of a task that is trained, and the events that it yields.

Knows: nothing. Blind to: how a task works, and who reads the events.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Progress:
    """How far a run is."""

    epoch: int = 0
    best: float | None = None
    """The measure on the dev set after the best epoch."""
    best_epoch: int = 0


@dataclass(frozen=True)
class Started:
    """The data was checked and the network built; nothing was computed yet."""

    examples: int
    dev: int
    dev_split_off: bool
    labels: dict[str, int]
    """How often each label, or type of span, occurs in the training examples."""
    parameters: int
    """The number of trained parameters."""
    width: int
    """Width of a token's input vector."""
    notes: list[str]
    """What a user should know about the data."""


@dataclass(frozen=True)
class LayersComputed:
    """The layers of some sentences of the data were computed."""

    done: int
    total: int


@dataclass(frozen=True)
class WaitingForLayers:
    """Another run is computing the layers of the same data; repeated until it ends."""


@dataclass(frozen=True)
class Step:
    """One update of the weights."""

    epoch: int
    done: float
    """Share of the epoch."""
    loss: float


@dataclass(frozen=True)
class Epoch:
    """One pass over the examples, and the evaluation on the dev set after it."""

    number: int
    loss: float
    value: float
    """The task's measure on the dev set."""
    best: bool
    seconds: float


@dataclass(frozen=True)
class Finished:
    """The end of training, also of a run that had ended before; the network has the weights of its best epoch."""

    why: str
    epoch: int
    """The best epoch."""
    value: float
    """The task's measure on the dev set after the best epoch."""


Event = Started | LayersComputed | WaitingForLayers | Step | Epoch | Finished

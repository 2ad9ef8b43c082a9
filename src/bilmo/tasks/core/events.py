"""What a task tells while it learns.

Knows: nothing. Blind to: how a task works, and who listens.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Prepared:
    """Before anything is computed."""

    examples: int
    dev: int
    dev_split_off: bool
    labels: dict[str, int]
    """How often each label, or type of span, occurs in the examples to learn from."""
    parameters: int
    """That are learned."""
    width: int
    """Of a token's vector as it goes in."""
    notes: list[str]
    """What a user should know of the data."""


@dataclass(frozen=True)
class Computed:
    """Layers of some sentences of the data are there."""

    done: int
    total: int


@dataclass(frozen=True)
class Step:
    """One update of the weights."""

    epoch: int
    done: float
    """Share of the epoch."""
    loss: float


@dataclass(frozen=True)
class Epoch:
    """A pass over the examples, and how the dev set was answered after it."""

    number: int
    loss: float
    value: float
    """The task's own measure on the dev set."""
    best: bool
    seconds: float


@dataclass(frozen=True)
class Finished:
    """The end, or what was found when the run was over already; the task is at its best epoch."""

    why: str
    epoch: int
    value: float


Event = Prepared | Computed | Step | Epoch | Finished

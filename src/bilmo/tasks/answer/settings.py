"""The settings of answering questions.

Knows: the settings of all tasks. Blind to: data, tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

from bilmo.tasks.core.settings import Settings

WINDOW, OVERLAP = 500, 125
"""Tokens of a context that are compared with each other at a time; and tokens that a window shares with the next."""


@dataclass(frozen=True, kw_only=True)
class AnswerSettings(Settings):
    """The settings of all tasks, and those of the answer head."""

    hidden: int = 100
    """Width of hidden layers, and of one direction of an LSTM."""
    rate: float = 0.002
    """Learning rate of the task's own network."""
    batch: int = 16
    """Questions per step."""
    dropout: float = 0.2
    """Dropout on the input vectors and before each LSTM."""
    longest: int = 40
    """Maximum number of tokens in a predicted answer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._within("longest", 1, OVERLAP)

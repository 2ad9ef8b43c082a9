"""The settings of role labelling.

Knows: the settings of all tasks. Blind to: data, tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

from bilmo.net.config import MAX_DEPTH
from bilmo.tasks.core.settings import Settings


@dataclass(frozen=True, kw_only=True)
class RolesSettings(Settings):
    """The settings of all tasks, and those of the role head."""

    rate: float = 0.002
    """Learning rate of the task's own network."""
    batch: int = 16
    """Sentences per step."""
    dropout: float = 0.2
    """Dropout on the input vectors and before the last layer."""
    depth: int = 3
    """Number of BiLSTM layers: the lower ones read a sentence once, the upper `depth // 2` once per predicate."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._within("depth", 2, MAX_DEPTH)

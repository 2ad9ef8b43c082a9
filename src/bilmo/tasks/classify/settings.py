"""The settings of classification.

Knows: the settings of all tasks. Blind to: data, tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

from bilmo.net.config import MAX_DEPTH
from bilmo.tasks.core.settings import Settings, check_choice

HEADS = ("mean", "max", "attention", "lstm", "bilstm", "linear")


@dataclass(frozen=True, kw_only=True)
class ClassifySettings(Settings):
    """The settings of all tasks, and those of the text head."""

    head: str = "mean"
    """`mean`, `max` or `attention` (pooling, then hidden layers), `lstm`, `bilstm`, or `linear`."""
    dense: int = 1
    """Number of hidden layers after pooling."""
    batch_norm: bool = False
    """Use batch normalization before the last layer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("head", self.head, HEADS)
        self._within("dense", 0, MAX_DEPTH)

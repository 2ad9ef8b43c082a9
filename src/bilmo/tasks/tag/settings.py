"""The settings of tagging.

Knows: the settings of all tasks. Blind to: data, tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

from bilmo.tasks.core.settings import Settings, check_choice

HEADS = ("bilstm-crf", "linear")


@dataclass(frozen=True, kw_only=True)
class TagSettings(Settings):
    """The settings of all tasks, and those of the token head."""

    head: str = "bilstm-crf"
    """`bilstm-crf`, or `linear` (each token separately). Both predict only legal tag sequences."""
    column: str = ""
    """Column with the tags: `upos` (default) or `xpos` for CoNLL-U, otherwise a number from 2 (default: the last)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("head", self.head, HEADS)

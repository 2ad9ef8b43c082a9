"""The settings of relations.

Knows: the settings of all tasks. Blind to: data, tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

from bilmo.tasks.core.settings import Settings


@dataclass(frozen=True, kw_only=True)
class RelateSettings(Settings):
    """The settings of all tasks."""

"""The settings of entailment.

Knows: the settings of all tasks. Blind to: data, tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

from bilmo.tasks.core.settings import Settings


@dataclass(frozen=True, kw_only=True)
class EntailSettings(Settings):
    """The settings of all tasks; less dropout, which would hide which tokens match."""

    dropout: float = 0.2
    """Dropout on the input vectors and on the layers after the alignment."""

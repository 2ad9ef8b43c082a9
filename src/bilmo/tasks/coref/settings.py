"""The settings of coreference.

Knows: the settings of all tasks. Blind to: data, tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

from bilmo.errors import ConfigError
from bilmo.tasks.core.settings import Settings

WIDEST = 50
MOST_ANTECEDENTS = 1000


@dataclass(frozen=True, kw_only=True)
class CorefSettings(Settings):
    """The settings of all tasks, and those of the span head."""

    batch: int = 1
    """Documents per step."""
    span_width: int = 10
    """Maximum number of tokens in a mention. Longer mentions are not found."""
    spans_per_token: float = 0.4
    """How many spans are kept as possible mentions, per token of the document."""
    antecedents: int = 50
    """Maximum number of earlier mentions that are compared with each mention."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._within("span_width", 1, WIDEST)
        self._within("antecedents", 1, MOST_ANTECEDENTS)
        if not 0 < self.spans_per_token <= 1:
            raise ConfigError(f"spans_per_token is {self.spans_per_token}; it must be above 0 and at most 1")

"""A source and its target, as the network takes them.

Knows: nothing. Blind to: tensors, how texts are split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bilmo.tasks.network.batch import Text


@dataclass(frozen=True)
class PairItem:
    """One source, and its target where it is known."""

    text: Text
    """The sentences of the source."""
    copies: Sequence[str]
    """All its tokens, in the form of target words."""
    target: Sequence[str] = ()

    @property
    def texts(self) -> Sequence[Text]:
        """The source."""
        return (self.text,)

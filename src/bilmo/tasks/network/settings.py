"""The settings of a task's input: which vectors each token gets.

Knows: nothing. Blind to: data, tensors, heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bilmo.net.config import STRICT


@dataclass(frozen=True, kw_only=True)
class InputSettings:
    """Which vectors are concatenated for each token."""

    __pydantic_config__ = STRICT

    elmo_at: Literal["input", "output", "both", "none"] = "input"
    """Where mixed ELMo layers enter the task's own network: at its `input`, at its `output`, at `both`, or `none`."""
    mix: str | tuple[int, ...] = "weighted"
    """How layers are mixed: `weighted` (learned), `top`, `mean`, `concat`, or layer numbers for their mean (`0,1`)."""
    l2: float = 0.001
    """L2 penalty on the weights of a weighted mix: 1 keeps the layers nearly equal, 0.001 lets them differ."""
    chars: int = 0
    """Number of filters of the task's own character CNN; 0 for no character CNN."""
    word_width: int = 100
    """Width of word vectors that are trained from scratch."""
    dropout: float = 0.5
    """Dropout on the input vectors and before the last layer."""
    tune: bool = False
    """Train the biLM together with the task; its layers are then recomputed in every step."""

    @property
    def elmo_at_input(self) -> bool:
        """Whether ELMo is concatenated to the input of the task's own network."""
        return self.elmo_at in ("input", "both")

    @property
    def elmo_at_output(self) -> bool:
        """Whether ELMo is concatenated to the output of the task's own network."""
        return self.elmo_at in ("output", "both")

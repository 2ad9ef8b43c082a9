"""Vectors of many sentences on their way to a file: a row a sentence, read one at a time, as often as needed.

Knows: numpy. Blind to: files, how vectors are made.
"""

# L layers, N tokens of a sentence, W width of a vector

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Row:
    """A sentence, or a line of several: as it was given, its tokens, and their vectors."""

    text: str
    tokens: list[str]
    vectors: NDArray[np.floating[Any]]
    """Of the shape that `Form.shape` tells."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """What the vectors of every sentence look like."""

    width: int
    layers: int | None = None
    """How many layers stand one after the other; None where they were mixed into one."""
    pooled: bool = False
    """One vector a sentence."""
    dtype: str = "float32"
    split: bool = False
    """The text was split here, so only we know its tokens."""

    def shape(self, tokens: int) -> tuple[int, ...]:
        """(L, N, W), without L where layers were mixed and without N where tokens were pooled."""
        layers = () if self.layers is None else (self.layers,)
        return (*layers, self.width) if self.pooled else (*layers, tokens, self.width)

    def bytes(self, *, sentences: int, tokens: int) -> int:
        """Room for the numbers of so many."""
        one = self.width * (self.layers or 1) * np.dtype(self.dtype).itemsize
        return one * (sentences if self.pooled else tokens)


@dataclass(frozen=True)
class Table:
    """All rows, in order; `read` begins from the first each time."""

    form: Form
    read: Callable[[], Iterator[Row]]
    sentences: int
    tokens: int

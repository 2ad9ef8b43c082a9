"""Vectors of many texts on their way to a file: one text at a time, as often as a writer needs.

Knows: numpy, offsets. Blind to: files, how vectors are made.
"""

# L layers, N tokens of a text, W width of a vector

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilmo.text.offsets import offsets


@dataclass(frozen=True)
class EmbeddedText:
    """One line of the input, of one or several sentences: the text as given, its tokens, and their vectors."""

    text: str
    """If tokens were given, they are joined by spaces."""
    tokens: list[str]
    vectors: NDArray[np.floating[Any]]
    """Of the shape that `VectorSpec.shape` gives."""

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """Where each token begins and ends in the text, in characters."""
        return offsets(self.text, self.tokens)


@dataclass(frozen=True, kw_only=True)
class VectorSpec:
    """What the vectors of every text have in common."""

    width: int
    layers: int | None = None
    """Number of separate layers; None if they are mixed into one."""
    pooled: bool = False
    """One vector per text instead of one per token."""
    dtype: str = "float32"
    split_by_bilmo: bool = False
    """bilmo tokenized the text, so output files include the tokens."""
    about: dict[str, str] = field(default_factory=dict)
    """Written into the file: which model and settings made it."""

    def shape(self, tokens: int) -> tuple[int, ...]:
        """(L, N, W); without L if layers are mixed, without N if tokens are pooled."""
        layers = () if self.layers is None else (self.layers,)
        return (*layers, self.width) if self.pooled else (*layers, tokens, self.width)

    def bytes(self, *, sentences: int, tokens: int) -> int:
        """Size of the vectors of this many texts and tokens."""
        one = self.width * (self.layers or 1) * np.dtype(self.dtype).itemsize
        return one * (sentences if self.pooled else tokens)


@dataclass(frozen=True)
class Table:
    """All texts, in order; each call of `read` starts from the first."""

    spec: VectorSpec
    read: Callable[[], Iterator[EmbeddedText]]
    sentences: int
    """Number of texts."""
    tokens: int

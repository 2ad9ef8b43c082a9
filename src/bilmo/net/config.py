"""The shape of a network as frozen dataclasses, each field documented under itself.

Knows: nothing. Blind to: tensors, files, old names.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from bilmo.errors import ConfigError

Direction = Literal["forward", "backward"]
Precision = Literal["float32", "int8"]
BOTH: tuple[Direction, ...] = ("forward", "backward")

STRICT = {"extra": "forbid"}
"""For readers of config files: a misspelt key is an error, not a default, and no value is converted to another type."""


MAX_SIZE, MAX_DEPTH = 10**8, 100
"""Bounds on any size and any depth: far above any realistic model, and low enough that checking a config
needs no memory."""
MAX_CLIP = 1e30
"""Far above any useful bound, and below the largest float32."""


@dataclass(frozen=True, kw_only=True)
class CharsConfig:
    """Character CNN: one vector per character, filters of several widths, max over positions, highways."""

    __pydantic_config__ = STRICT

    kind: Literal["bytes", "unicode"] = "bytes"
    """UTF-8 bytes in the old scheme, or Unicode characters in a table built from text."""
    rows: int = 261
    """Ids in the character table; 261 for bytes."""
    width: int = 16
    """Width of a character's vector."""
    filters: tuple[tuple[int, int], ...] = (
        (1, 32),
        (2, 32),
        (3, 64),
        (4, 128),
        (5, 256),
        (6, 512),
        (7, 1024),
    )
    """(characters seen at once, number of filters) for each convolution."""
    activation: Literal["relu", "tanh"] = "relu"
    """Function that is applied after the max over positions."""
    highways: int = 2
    """Highway layers over the concatenated filters."""
    max_characters: int | None = 50
    """Maximum length of a word, its begin and end marks included; longer words are cut. None for no maximum."""

    def __post_init__(self) -> None:
        _within(1, MAX_SIZE, rows=self.rows, width=self.width)
        _within(0, MAX_DEPTH, highways=self.highways)
        if not self.filters:
            raise ConfigError("a character CNN needs at least one filter, as in filters = [[1, 32], [2, 32]]")
        if len(self.filters) > MAX_DEPTH:
            raise ConfigError(f"filters has {len(self.filters):,} sizes of filters; there may be at most {MAX_DEPTH}")
        for characters, number in self.filters:
            _within(1, MAX_SIZE, filter_width=characters, filter_number=number)
        if self.max_characters is not None and self.max_characters < max(3, self.widest_filter):
            raise ConfigError(
                f"max_characters is {self.max_characters}; it must be at least 3 (two marks and a character) "
                f"and at least the width of the widest filter ({self.widest_filter})"
            )
        if self.kind == "bytes" and self.rows != 261:
            raise ConfigError(f"a table of bytes has 261 rows (256 bytes and five marks), not {self.rows}")

    @property
    def widest_filter(self) -> int:
        """Characters that the widest filter sees."""
        return max(characters for characters, _ in self.filters)

    @property
    def outputs(self) -> int:
        """Width of the concatenated filters."""
        return sum(number for _, number in self.filters)


@dataclass(frozen=True, kw_only=True)
class TableConfig:
    """One vector for each word of a vocabulary, trained or pretrained."""

    __pydantic_config__ = STRICT

    rows: int
    """Words in the vocabulary, its three marks included."""
    width: int
    """Width of a word's vector."""
    given: bool = False
    """The vectors come from a file; rows 0 to 2, the marks `<S>`, `</S>` and `<UNK>`, are still learned."""
    tuned: bool = True
    """Pretrained vectors are trained further; False leaves them unchanged."""
    lower: bool = False
    """Words are looked up in lower case, because the pretrained vectors have only lower-case words."""

    def __post_init__(self) -> None:
        _within(1, MAX_SIZE, rows=self.rows, width=self.width)
        if self.given and self.rows < 3:
            raise ConfigError(f"pretrained vectors need rows for the three marks; the table has {self.rows} rows")


@dataclass(frozen=True, kw_only=True)
class WordsConfig:
    """How a word becomes a vector before any context: by its characters, by a table, or by both."""

    __pydantic_config__ = STRICT

    chars: CharsConfig | None = None
    table: TableConfig | None = None
    project: bool = True
    """A learned linear map to the network's width; required if the parts do not have that width."""
    highways: int = 0
    """Highway layers after the projection; those of the character CNN come before it."""

    def __post_init__(self) -> None:
        if self.chars is None and self.table is None:
            raise ConfigError("a word encoder needs characters, a table of words, or both")
        _within(0, MAX_DEPTH, highways=self.highways)

    @property
    def outputs(self) -> int:
        """Width of a word's vector before the projection."""
        return (self.table.width if self.table else 0) + (self.chars.outputs if self.chars else 0)


@dataclass(frozen=True, kw_only=True)
class CellConfig:
    """One recurrent layer of one direction."""

    __pydantic_config__ = STRICT

    kind: Literal["rnn", "gru", "lstm"] = "lstm"
    cells: int = 4096
    """Memory cells of an LSTM; equal to the network's width if there is no projection."""
    project: bool = True
    """LSTM only: the cells' output goes through a linear map, without bias, to the network's width."""
    cell_clip: float | None = 3.0
    """LSTM only: bound on the cell state; None sets no bound."""
    projection_clip: float | None = 3.0
    """Bound on the projected output; None sets no bound."""
    forget_bias: float = 1.0
    """LSTM only: added to the forget gate when the weights are used; never part of the stored bias."""

    def __post_init__(self) -> None:
        _within(1, MAX_SIZE, cells=self.cells)
        if self.kind != "lstm" and (self.project or self.cell_clip is not None):
            raise ConfigError(f"only an LSTM has a projection and a cell clip; the cell is {self.kind!r}")
        if not self.project and self.projection_clip is not None:
            raise ConfigError("projection_clip needs a projection; leave it out")
        if not math.isfinite(self.forget_bias):
            raise ConfigError(f"forget_bias is {self.forget_bias}; it must be a finite number")
        for name in ("cell_clip", "projection_clip"):
            clip = getattr(self, name)
            if clip is not None and not (0 < clip <= MAX_CLIP or clip == math.inf):
                raise ConfigError(f"{name} is {clip}; it must be above 0 and at most {MAX_CLIP:g} (inf for no bound)")


@dataclass(frozen=True, kw_only=True)
class BiLMConfig:
    """The whole network: word encoder, then a recurrent stack for each direction."""

    __pydantic_config__ = STRICT

    words: WordsConfig
    cell: CellConfig
    width: int = 512
    """Output of the word encoder and of each layer of one direction; a token's vector is twice this."""
    layers: int = 2
    """Recurrent layers of each direction."""
    skip: bool = True
    """From the second layer on, a layer's input is added to its output."""
    directions: tuple[Direction, ...] = BOTH

    def __post_init__(self) -> None:
        _within(1, MAX_SIZE, width=self.width)
        _within(1, MAX_DEPTH, layers=self.layers)
        if not self.directions or tuple(d for d in BOTH if d in self.directions) != self.directions:
            raise ConfigError(f"directions must be forward, backward, or both in this order; found {self.directions}")
        if not self.words.project and self.words.outputs != self.width:
            raise ConfigError(
                f"the word encoder has {self.words.outputs} outputs, but the width of the network is {self.width}: "
                "use a projection, or make them equal"
            )
        if not self.cell.project and self.cell.cells != self.width:
            raise ConfigError(
                f"there are {self.cell.cells} cells without a projection, "
                f"but the width is {self.width}: make them equal"
            )

    @property
    def vector_width(self) -> int:
        """Width of a token's vector in one layer: all directions joined."""
        return self.width * len(self.directions)


def _within(least: int, most: int, **values: int) -> None:
    for name, value in values.items():
        if not least <= value <= most:
            raise ConfigError(f"{name} is {value}; it must be from {least} to {most}")

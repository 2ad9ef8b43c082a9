"""options.json of bilm-tf and AllenNLP: its settings, and the network config that they and the tensors describe.

Knows: the old options, BiLMConfig. Blind to: how tensors are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bilmo.errors import ConfigError, WeightsError
from bilmo.net.config import BOTH, BiLMConfig, CellConfig, CharsConfig, Direction, TableConfig, WordsConfig
from bilmo.store.bundle import Shape

# Unknown keys are ignored: published files have many that mean nothing.


@dataclass(frozen=True, kw_only=True)
class LstmOptions:
    """The recurrent part."""

    dim: int
    projection_dim: int
    n_layers: int
    use_skip_connections: bool | None = None
    """Missing means no, as in bilm-tf."""
    cell_clip: float | None = None
    proj_clip: float | None = None


@dataclass(frozen=True, kw_only=True)
class CharOptions:
    """The character vectors."""

    dim: int


@dataclass(frozen=True, kw_only=True)
class CnnOptions:
    """The word encoder."""

    filters: tuple[tuple[int, int], ...]
    embedding: CharOptions
    activation: Literal["relu", "tanh"]
    n_highway: int | None = None
    """Missing means none, as in bilm-tf."""
    max_characters_per_token: int = 50


@dataclass(frozen=True, kw_only=True)
class Options:
    """The whole file."""

    lstm: LstmOptions
    char_cnn: CnnOptions | None = None
    bidirectional: bool | None = None


CELL = "RNN_{}/RNN/MultiRNNCell/Cell0/LSTMCell/{}"


def network_of(options: Options, shapes: Mapping[str, Shape], where: Path) -> tuple[BiLMConfig, list[str]]:
    """The network that options and tensors describe together, and notes on what was assumed."""
    notes: list[str] = []
    lstm = options.lstm
    directions = _directions(options, shapes, where, notes)
    projected = lstm.projection_dim < lstm.dim or any(CELL.format(d, "W_P_0") in shapes for d in (0, 1))
    if not projected and lstm.projection_dim != lstm.dim:
        raise ConfigError(
            f"{where}: projection_dim {lstm.projection_dim} is larger than dim {lstm.dim}, so words and layers would "
            "have different widths and cannot be mixed. No old system could use such a model; bilmo refuses it."
        )
    config = BiLMConfig(
        words=_words(options, shapes, where, notes),
        cell=CellConfig(
            kind="lstm",
            cells=lstm.dim,
            project=projected,
            cell_clip=lstm.cell_clip or None,  # 0 means off in AllenNLP; bilm-tf cannot use it
            projection_clip=(lstm.proj_clip or None) if projected else None,
            forget_bias=1.0,
        ),
        width=lstm.projection_dim,
        layers=lstm.n_layers,
        skip=bool(lstm.use_skip_connections),
        directions=directions,
    )
    return config, notes


def _directions(options: Options, shapes: Mapping[str, Shape], where: Path, notes: list[str]) -> tuple[Direction, ...]:
    found: tuple[Direction, ...] = tuple(
        name for number, name in enumerate(BOTH) if any(tensor.startswith(f"RNN_{number}/") for tensor in shapes)
    )
    if not found:
        raise WeightsError(f"{where.parent}: no recurrent weights (RNN_0/..., RNN_1/...) next to {where.name}")
    if found != BOTH:
        if options.bidirectional:
            raise WeightsError(f"{where}: says bidirectional, but there are weights for the {found[0]} direction only")
        notes.append(f"one direction only: {found[0]}")
    return found


def _words(options: Options, shapes: Mapping[str, Shape], where: Path, notes: list[str]) -> WordsConfig:
    cnn = options.char_cnn
    if cnn and ("char_embed" in shapes or "embedding" not in shapes):
        chars = CharsConfig(
            kind="bytes",
            width=cnn.embedding.dim,
            filters=cnn.filters,
            activation=cnn.activation,
            highways=cnn.n_highway or 0,
            max_characters=cnn.max_characters_per_token,
        )
        project = "CNN_proj/W_proj" in shapes or chars.outputs != options.lstm.projection_dim
        return WordsConfig(chars=chars, project=project)
    rows = shapes.get("embedding")
    if rows is None:
        raise WeightsError(
            f"{where}: has no char_cnn, so words need a table, but no HDF5 file next to it has the dataset `embedding`"
        )
    if cnn:
        notes.append("the character weights are missing; words come from the table of cached vectors instead")
    return WordsConfig(table=TableConfig(rows=rows[0] if rows else 0, width=options.lstm.projection_dim), project=False)

"""A recipe: every setting of a training run, as frozen values and as a TOML file.

Knows: configs, TOML. Blind to: text, tensors.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from bilmo.errors import ConfigError
from bilmo.ids.chars import ByteChars
from bilmo.ids.vocab import MARKS
from bilmo.net.config import DEEPEST, STRICT, BiLMConfig, CellConfig, CharsConfig, TableConfig, WordsConfig
from bilmo.store.model_folder import checked

VECTORS = "vectors:"
WORDS = {"+".join(kinds): frozenset(kinds) for kinds in (
    ("chars",), ("table",), ("chars", "table"), ("table", "chars"), ("vectors",), ("chars", "vectors")
)}  # fmt: skip
"""How a word encoder may be put together, as `words` names it."""
SHIPPED = ("tiny", "novel", "small", "original", "finetune", "en", "zh")


@dataclass(frozen=True, kw_only=True)
class TextRecipe:
    """How text becomes words, and which words have a place in the softmax."""

    __pydantic_config__ = STRICT

    lang: str = "auto"
    """How text is split: auto, spaces (it is split already), en, west, zh."""
    held_out: float = 0.02
    """Share of the paragraphs that are never trained on, but judged by."""
    min_count: int = 1
    """Words that are rarer count as `<UNK>` when predicted; as input they keep their characters."""
    vocab_size: int | None = None
    """The most frequent words, marks included, that can be predicted; none means all."""

    def __post_init__(self) -> None:
        _check(self, "held_out", lambda value: 0 < value < 1, "above 0 and below 1")
        _check(self, "min_count", lambda value: value >= 1, "1 or more")
        _check(self, "vocab_size", lambda value: value is None or value > len(MARKS), f"above {len(MARKS)}, the marks")


@dataclass(frozen=True, kw_only=True)
class NetworkRecipe:
    """The shape of the network; see the configs of the same names."""

    __pydantic_config__ = STRICT

    words: str = "chars"
    """chars, table, chars+table, vectors:FILE, or chars+vectors:FILE."""
    chars: Literal["auto", "bytes", "unicode"] = "auto"
    """auto: Unicode characters for Chinese, bytes for the rest."""
    char_width: int = 16
    filters: tuple[tuple[int, int], ...] = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    activation: Literal["relu", "tanh"] = "relu"
    highways: int = 1
    """Over the filters, before the projection, as published."""
    word_highways: int = 0
    """The same after the projection, at the network's width, which takes far fewer weights."""
    max_characters: int = 50
    table_width: int | None = None
    """Width of a trained word table; none means the network's width."""
    tuned: bool = False
    """Train given word vectors further."""
    cell: Literal["rnn", "gru", "lstm"] = "lstm"
    cells: int = 512
    """Memory cells of an LSTM; where they differ from the width, it has a projection. Others: see width."""
    width: int = 256
    layers: int = 2
    skip: bool = True
    cell_clip: float | None = 3.0
    """Bound on memory and projection of an LSTM."""

    def __post_init__(self) -> None:
        for name in ("char_width", "max_characters", "table_width", "cells", "width", "layers"):
            _check(self, name, lambda value: value is None or value >= 1, "1 or more")
        for name in ("highways", "word_highways"):
            _check(self, name, lambda value: 0 <= value <= DEEPEST, f"from 0 to {DEEPEST}")
        if not self.parts or self.vectors_file == Path():
            raise ConfigError(
                f"words is {self.words!r}; accepted: chars, table, chars+table, and with a vectors file "
                "vectors:FILE or chars+vectors:FILE"
            )
        self.config(len(MARKS), characters=None, given=self.width)  # whatever cannot be is told at once

    @property
    def parts(self) -> frozenset[str]:
        """What `words` joins, of "chars", "table" and "vectors"; empty where it cannot be read."""
        kinds = self.words.partition(VECTORS)[0] + ("vectors" if VECTORS in self.words else "")
        return WORDS.get(kinds, frozenset())

    @property
    def vectors_file(self) -> Path | None:
        """The file of word vectors that `words` names."""
        return Path(self.words.partition(VECTORS)[2]) if "vectors" in self.parts else None

    def config(self, words: int, *, characters: int | None, given: int | None) -> BiLMConfig:
        """The network for so many words, Unicode characters (None: bytes), and numbers in a given vector."""
        table, chars = None, None
        if "table" in self.parts:
            table = TableConfig(rows=words, width=self.table_width or self.width)
        if "vectors" in self.parts and given:
            table = TableConfig(rows=words, width=given, given=True, tuned=self.tuned)
        if "chars" in self.parts:
            chars = CharsConfig(
                kind="unicode" if characters else "bytes",
                rows=characters or ByteChars.rows,
                width=self.char_width,
                filters=self.filters,
                activation=self.activation,
                highways=self.highways,
                max_characters=self.max_characters,
            )
        outputs = WordsConfig(chars=chars, table=table).outputs
        lstm = self.cell == "lstm"
        projected = lstm and self.cells != self.width
        return BiLMConfig(
            words=WordsConfig(
                chars=chars,
                table=table,
                project=outputs != self.width,
                highways=self.word_highways if chars else 0,  # they join what filters found; a table has no need of it
            ),
            cell=CellConfig(
                kind=self.cell,
                cells=self.cells if lstm else self.width,
                project=projected,
                cell_clip=self.cell_clip if lstm else None,
                projection_clip=self.cell_clip if projected else None,
            ),
            width=self.width,
            layers=self.layers,
            skip=self.skip,
        )


@dataclass(frozen=True, kw_only=True)
class TrainRecipe:
    """How the network is trained."""

    __pydantic_config__ = STRICT

    context: Literal["sentences", "stream"] = "sentences"
    """sentences: each from one learned start. stream: the paper's endless stream with carried state."""
    batch: int = 1024
    """Steps (words) in a batch, of each direction."""
    window: int = 20
    """stream: steps until the gradient is cut."""
    longest: int = 80
    """sentences: one of more steps is read in pieces."""
    softmax: Literal["auto", "full", "sampled"] = "auto"
    """auto: full up to 10,000 words."""
    samples: int = 4096
    """sampled: words that compete with the right one in a step."""
    prior: Literal["counts", "flat"] = "counts"
    """What counts of the text say to a new softmax: how often to expect words, unknown ones too, or nothing."""
    head_first: float = 0.3
    """Share of the run in which the softmax alone is trained, where a trained network came without one."""
    optimizer: Literal["adam", "adagrad", "sgd"] = "adam"
    rate: float = 0.002
    warm_up: float = 0.02
    """Share of the run over which the rate rises from 0."""
    decay: bool = True
    """The rate falls to 0 over the run, in a straight line; else it stays."""
    clip: float = 5.0
    """Bound on the norm of all gradients together."""
    dropout: float = 0.1
    """On the input of every layer and before the softmax."""
    vector_dropout: float = 0.0
    """chars+vectors: share of the distinct words of a step that are read by their spelling alone, as words without a
    vector always are."""
    weight_decay: float = 0.0
    average: float = 0.0
    """Share of the old value that a running average of the weights keeps each step; 0 means no average."""
    epochs: float = 10
    minutes: float | None = None
    """Train for a time instead of for epochs."""
    evaluate_every: int = 500
    """Steps between two looks at held-out text."""
    save_every: int = 200
    """Steps between two checkpoints; as much is repeated at most after a power cut."""
    patience: int = 8
    """Looks without a better held-out perplexity until training stops; 0 never stops."""
    seed: int = 1
    device: str = "auto"
    """auto: a CUDA GPU where torch finds one. Or cpu, cuda, cuda:1, mps."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """bfloat16: products in half the bytes, for GPUs that have them; weights stay float32."""

    def __post_init__(self) -> None:
        for name in ("batch", "window", "longest", "samples", "evaluate_every", "save_every"):
            _check(self, name, lambda value: value >= 1, "1 or more")
        for name in ("dropout", "vector_dropout", "average", "warm_up", "head_first"):
            _check(self, name, lambda value: 0 <= value < 1, "from 0 up to 1, 1 not included")
        for name in ("clip", "epochs", "minutes"):
            _check(self, name, lambda value: value is None or 0 < value < math.inf, "above 0, and a number")
        for name in ("rate", "weight_decay", "patience"):
            _check(self, name, lambda value: 0 <= value < math.inf, "0 or more, and a number")
        _check(self, "seed", lambda value: 0 <= value < 2**63, "from 0 up to 2**63 - 1")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All of it."""

    __pydantic_config__ = STRICT

    text: TextRecipe = field(default_factory=TextRecipe)
    network: NetworkRecipe = field(default_factory=NetworkRecipe)
    train: TrainRecipe = field(default_factory=TrainRecipe)


def _check(recipe: Any, name: str, sound: Callable[[Any], bool], needed: str) -> None:
    value = getattr(recipe, name)
    if not sound(value):
        raise ConfigError(f"{name} is {value}; it must be {needed}")


def read(name: str, changes: dict[str, Any] | None = None) -> Recipe:
    """A shipped recipe by name, or a TOML file; `changes` are settings by their names, which are all different."""
    if name in SHIPPED:
        text, where = (files("bilmo.train") / "recipes" / f"{name}.toml").read_text(encoding="utf-8"), name
    else:
        path = Path(name)
        if not path.is_file():
            raise ConfigError(f"there is no recipe {name!r}; known are {', '.join(SHIPPED)}, or a TOML file")
        try:
            text, where = path.read_text(encoding="utf-8-sig"), str(path)
        except UnicodeDecodeError as error:
            raise ConfigError(f"recipe {path}: is not UTF-8 ({error.reason} at byte {error.start + 1})") from None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"recipe {where}: is not TOML ({error})") from None
    checked(data, Recipe, f"recipe {where}")  # as it stands, before single settings are replaced
    changes = changes or {}
    if {"minutes", "epochs"} <= changes.keys():
        raise ConfigError("minutes and epochs are both given; a run is as long as one of them says")
    if "epochs" in changes:
        data.get("train", {}).pop("minutes", None)
    for key, value in changes.items():
        data.setdefault(section_of(key), {})[key] = value
    recipe = checked(data, Recipe, f"recipe {where}")
    network = recipe.network
    if "cells" in changes and network.cell != "lstm" and network.cells != network.width:
        raise ConfigError(
            f"cells is {network.cells} and width {network.width}; only an LSTM has a projection from one to the other, "
            f"a {network.cell} has as many cells as it is wide. Give the width alone."
        )
    if "table_width" in changes and "table" not in network.parts:
        raise ConfigError(f"table_width is {network.table_width}, but words is {network.words!r}: there is no table")
    if recipe.train.vector_dropout and network.parts != {"chars", "vectors"}:
        raise ConfigError(
            f"vector_dropout is {recipe.train.vector_dropout}, but words is {network.words!r}: only words that have "
            "both characters and a vector can be read without the vector. Use chars+vectors:FILE."
        )
    return recipe


SECTIONS = {"text": TextRecipe, "network": NetworkRecipe, "train": TrainRecipe}


def section_of(key: str) -> str:
    """The section that a setting belongs to."""
    return next(name for name, kind in SECTIONS.items() if key in {f.name for f in fields(kind)})


def differences(a: Any, b: Any, prefix: str = "") -> list[str]:
    """Settings in which two recipes differ, in words."""
    if is_dataclass(a):
        parts = [differences(getattr(a, f.name), getattr(b, f.name), f"{prefix}{f.name}.") for f in fields(a)]
        return [line for part in parts for line in part]
    return [] if a == b else [f"{prefix[:-1]} was {a!r} and is now {b!r}"]

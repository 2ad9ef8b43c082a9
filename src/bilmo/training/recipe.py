"""A recipe: every setting of a training run, as frozen dataclasses and as a TOML file.

Knows: configs, TOML. Blind to: text, tensors.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from bilmo.errors import ConfigError
from bilmo.ids.chars import ByteChars
from bilmo.ids.vocab import MARKS
from bilmo.net.config import MAX_DEPTH, MAX_SIZE, STRICT, BiLMConfig, CellConfig, CharsConfig, TableConfig, WordsConfig
from bilmo.store.validate import checked

VECTORS = "vectors:"
WORDS = {"+".join(kinds): frozenset(kinds) for kinds in (
    ("chars",), ("table",), ("chars", "table"), ("table", "chars"), ("vectors",), ("chars", "vectors")
)}  # fmt: skip
"""Accepted values of `words`, and the parts that each joins; a file name follows "vectors:"."""
LARGEST, LONGEST_LINE = 1 << 16, 1000
"""Bytes of a recipe file, and characters of a line in it."""
FEWEST_WORDS = 10_000
"""Smallest bound on distinct words; a smaller one would cut a text into thousands of blocks."""
MAX_RATE = 1000
"""Highest learning rate and weight decay; no optimizer works with a thousandth of it."""
SHIPPED = ("tiny", "novel", "small", "original", "finetune", "en", "zh")


@dataclass(frozen=True, kw_only=True)
class TextRecipe:
    """How text is split into words, and which words can be predicted."""

    __pydantic_config__ = STRICT

    lang: str = "auto"
    """How text is split: auto, spaces (tokens are separated by spaces), en, west, zh."""
    dictionary: str | None = None
    """zh: a file of words that are never split, one per line; it is saved with the model."""
    held_out: float = 0.02
    """Share of the paragraphs that are used for evaluation instead of training."""
    max_words: int | None = None
    """Distinct words of the text that are kept, the most frequent ones; rarer words are read as `<UNK>`. It bounds the
    memory of a large text; none means all words."""
    min_count: int = 1
    """Minimum count of a word. Rarer words count as `<UNK>` when they are predicted; as input they keep their
    characters."""
    vocab_size: int | None = None
    """Number of words that can be predicted, the most frequent ones and the marks; none means all."""

    def __post_init__(self) -> None:
        _check(self, "held_out", lambda value: 0 < value < 1, "above 0 and below 1")
        _check(self, "min_count", lambda value: 1 <= value <= MAX_SIZE, f"from 1 to {MAX_SIZE}")
        several = f"from {FEWEST_WORDS} to {MAX_SIZE}"
        _check(self, "max_words", lambda value: value is None or FEWEST_WORDS <= value <= MAX_SIZE, several)
        least = len(MARKS) + 1
        needed = f"above {len(MARKS)}, the marks, and at most {MAX_SIZE}"
        _check(self, "vocab_size", lambda value: value is None or least <= value <= MAX_SIZE, needed)


@dataclass(frozen=True, kw_only=True)
class NetworkRecipe:
    """The network; see the configs in net/config.py."""

    __pydantic_config__ = STRICT

    words: str = "chars"
    """chars, table, chars+table, vectors:FILE, or chars+vectors:FILE."""
    chars: Literal["auto", "bytes", "unicode"] = "auto"
    """auto: Unicode characters for Chinese, bytes for other languages."""
    char_width: int = 16
    """Width of a character vector."""
    filters: tuple[tuple[int, int], ...] = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    """Filters of the character CNN: pairs of a width in characters and a number of filters."""
    activation: Literal["relu", "tanh"] = "relu"
    """Function that is applied to the largest output of each filter."""
    highways: int = 1
    """Highway layers over the filters, before the projection, as published."""
    word_highways: int = 0
    """Highway layers after the projection, at the width of the network, which need far fewer weights."""
    max_characters: int = 50
    """Maximum number of characters of a word that are read, with its two marks."""
    table_width: int | None = None
    """Width of a trained word table; none means the width of the network."""
    tuned: bool = False
    """Train the pretrained word vectors too."""
    cell: Literal["rnn", "gru", "lstm"] = "lstm"
    cells: int = 512
    """Memory cells of an LSTM; if they differ from the width, it has a projection. GRU and RNN have only a width."""
    width: int = 256
    """Width of one direction; a token vector is twice as wide."""
    layers: int = 2
    """Recurrent layers of each direction."""
    skip: bool = True
    """From the second layer on, the input of a layer is added to its output."""
    cell_clip: float | None = 3.0
    """Bound on the cell state and the projection of an LSTM; none or inf for no bound."""

    def __post_init__(self) -> None:
        for name in ("char_width", "max_characters", "table_width", "cells", "width", "layers"):
            _check(self, name, lambda value: value is None or value >= 1, "1 or more")
        for name in ("highways", "word_highways"):
            _check(self, name, lambda value: 0 <= value <= MAX_DEPTH, f"from 0 to {MAX_DEPTH}")
        if not self.parts or self.vectors_file == Path():
            raise ConfigError(
                f"words is {self.words!r}; accepted: chars, table, chars+table, and with a vectors file "
                "vectors:FILE or chars+vectors:FILE"
            )
        self.config(len(MARKS), characters=None, given=self.width)  # a network that cannot exist is refused at once

    @property
    def parts(self) -> frozenset[str]:
        """The parts that `words` combines: "chars", "table", "vectors"; empty if it is not an accepted value."""
        kinds = self.words.partition(VECTORS)[0] + ("vectors" if VECTORS in self.words else "")
        return WORDS.get(kinds, frozenset())

    @property
    def vectors_file(self) -> Path | None:
        """The file of word vectors that `words` names."""
        return Path(self.words.partition(VECTORS)[2]) if "vectors" in self.parts else None

    def config(self, words: int, *, characters: int | None, given: int | None) -> BiLMConfig:
        """The network for these numbers of words and of Unicode characters (None: bytes).

        given: the width of given vectors, if there are any.
        """
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
                highways=self.word_highways if chars else 0,  # they combine what the filters found
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

    context: Literal["sentences", "stream", "document"] = "sentences"
    """sentences: each sentence starts from one learned state. stream: the paper's endless stream of sentences in random
    order, with carried state. document: the same with the sentences in the order of the text."""
    batch: int = 1024
    """Words in a batch, for each direction."""
    window: int = 20
    """stream, document: words after which the gradient is cut."""
    longest: int = 80
    """sentences: words above which a sentence is read in pieces."""
    softmax: Literal["auto", "full", "sampled"] = "auto"
    """auto: full for vocabularies of up to 10,000 words, else sampled."""
    samples: int = 4096
    """sampled: number of words that the target is compared with in a step."""
    prior: Literal["counts", "flat"] = "counts"
    """counts: a new softmax starts with the word counts and learns to expect unknown words. flat: it starts with equal
    probabilities."""
    head_first: float = 0.3
    """Share of the run in which only the softmax is trained, if a model to fine-tune came without one."""
    optimizer: Literal["adam", "adagrad", "sgd"] = "adam"
    """adagrad and sgd are those of the old systems."""
    rate: float = 0.002
    """Highest learning rate."""
    warm_up: float = 0.02
    """Share of the run over which the learning rate rises from 0."""
    decay: bool = True
    """The learning rate falls linearly to 0 over the run; otherwise it stays constant."""
    clip: float = 5.0
    """Bound on the norm of all gradients together."""
    dropout: float = 0.1
    """Dropout on the input of every layer and before the softmax."""
    vector_dropout: float = 0.0
    """chars+vectors: share of the distinct words of a step that are read by their characters only, without their
    vector, as words that have no vector always are."""
    weight_decay: float = 0.0
    """Weight decay, which reduces overfitting on a small text."""
    average: float = 0.0
    """Decay of a running average of the weights: the share of its old value kept at each step; 0 for no average."""
    epochs: float = 10
    """Maximum number of passes over the text."""
    minutes: float | None = None
    """Minutes to train, instead of epochs."""
    evaluate_every: int = 500
    """Steps between two evaluations on held-out text."""
    save_every: int = 200
    """Steps between two checkpoints; at most this many are repeated after a power cut."""
    patience: int = 8
    """Evaluations without improvement after which training stops; 0 means never."""
    seed: int = 1
    """Random seed; the same seed gives the same model."""
    device: str = "auto"
    """auto: a CUDA GPU if torch finds one. Or cpu, cuda, cuda:1, mps."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """bfloat16: matrix products in 16 bits, for GPUs and CPUs that support it (AVX512-BF16, AMX);
    weights, sums and evaluations stay float32."""

    def __post_init__(self) -> None:
        for name in ("batch", "window", "longest", "samples", "evaluate_every", "save_every"):
            _check(self, name, lambda value: 1 <= value <= MAX_SIZE, f"from 1 to {MAX_SIZE}")
        for name in ("dropout", "vector_dropout", "average", "warm_up", "head_first"):
            _check(self, name, lambda value: 0 <= value < 1, "at least 0 and below 1")
        for name in ("clip", "epochs", "minutes"):
            _check(self, name, lambda value: value is None or 0 < value < math.inf, "above 0 and finite")
        _check(self, "patience", lambda value: 0 <= value <= MAX_SIZE, f"from 0 to {MAX_SIZE}")
        for name in ("rate", "weight_decay"):
            _check(self, name, lambda value: 0 <= value <= MAX_RATE, f"from 0 to {MAX_RATE}")
        _check(self, "seed", lambda value: 0 <= value < 2**63, "from 0 up to 2**63 - 1")

    @property
    def length(self) -> str:
        """How long the run is, in words."""
        return f"{self.epochs:g} epochs" if self.minutes is None else f"{self.minutes:g} minutes"

    @property
    def same_at_any_length(self) -> bool:
        """Whether a longer run begins with exactly the steps of a shorter one."""
        return not self.decay and not self.warm_up and not self.patience


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All settings of a training run."""

    __pydantic_config__ = STRICT

    text: TextRecipe = field(default_factory=TextRecipe)
    network: NetworkRecipe = field(default_factory=NetworkRecipe)
    train: TrainRecipe = field(default_factory=TrainRecipe)


def _check(recipe: Any, name: str, sound: Callable[[Any], bool], needed: str) -> None:
    value = getattr(recipe, name)
    if not sound(value):
        raise ConfigError(f"{name} is {value}; it must be {needed}")


def read(name: str, changes: dict[str, Any] | None = None) -> Recipe:
    """An included recipe by name, or a TOML file; `changes` replaces single settings, by name."""
    if name in SHIPPED:
        text, where = (files("bilmo.training") / "recipes" / f"{name}.toml").read_text(encoding="utf-8"), name
    else:
        path = Path(name)
        if not path.is_file():
            raise ConfigError(f"there is no recipe {name!r}; accepted: {', '.join(SHIPPED)}, or a TOML file")
        text, where = _read_text(path), str(path)
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also for numbers of thousands of digits, or lists in lists in lists
        raise ConfigError(f"recipe {where}: is not TOML ({error})") from None
    checked(data, Recipe, f"recipe {where}")  # the file itself, before settings are replaced
    changes = {key: str(value) if isinstance(value, PathLike) else value for key, value in (changes or {}).items()}
    if {"minutes", "epochs"} <= changes.keys():
        raise ConfigError("minutes and epochs are both given; use only one of them")
    if "epochs" in changes:
        data.get("train", {}).pop("minutes", None)
    for key, value in changes.items():
        data.setdefault(section_of(key), {})[key] = value
    recipe = checked(data, Recipe, f"recipe {where}")
    network = recipe.network
    if "cells" in changes and network.cell != "lstm" and network.cells != network.width:
        raise ConfigError(
            f"cells is {network.cells} and width is {network.width}; only an LSTM can project cells to the width; "
            f"a {network.cell} has as many cells as its width. Set only the width."
        )
    if "table_width" in changes and "table" not in network.parts:
        raise ConfigError(f"table_width is {network.table_width}, but words is {network.words!r}, which has no table")
    if recipe.train.vector_dropout and network.parts != {"chars", "vectors"}:
        raise ConfigError(
            f"vector_dropout is {recipe.train.vector_dropout}, but words is {network.words!r}: only words with both "
            "characters and a vector can be read without the vector. Use chars+vectors:FILE."
        )
    return recipe


def _read_text(path: Path) -> str:
    """The text of a recipe file. A longer one could take minutes to parse: the time grows with the square of a line."""
    size = path.stat().st_size
    if size > LARGEST:
        raise ConfigError(f"recipe {path}: has {size:,} bytes; a recipe has at most {LARGEST:,}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"recipe {path}: is not UTF-8 ({error.reason} at byte {error.start + 1})") from None
    for number, line in enumerate(text.split("\n"), start=1):
        if len(line) > LONGEST_LINE:
            raise ConfigError(f"recipe {path}, line {number}: is longer than {LONGEST_LINE:,} characters; divide it")
    return text


SECTIONS = {"text": TextRecipe, "network": NetworkRecipe, "train": TrainRecipe}


def section_of(key: str) -> str:
    """The section that a setting belongs to."""
    for name, kind in SECTIONS.items():
        if key in {f.name for f in fields(kind)}:
            return name
    accepted = ", ".join(f.name for kind in SECTIONS.values() for f in fields(kind))
    raise ConfigError(f"there is no setting {key!r}; accepted: {accepted}")

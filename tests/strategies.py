"""Strategies for property tests: small networks of every kind, random weights, and difficult text."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from hypothesis import strategies as st

from bilmo.ids.batch import Indexer
from bilmo.ids.chars import ByteChars, CharTable
from bilmo.ids.vocab import Vocab
from bilmo.net.bilm import BiLM
from bilmo.net.config import BiLMConfig, CellConfig, CharsConfig, TableConfig, WordsConfig

ENCODERS = ("bytes", "unicode", "table", "given", "bytes and table", "unicode and given")
CELLS = ("rnn", "gru", "lstm", "lstm with projection")

ENTRIES = (
    "<bow>",
    "a",
    "é",
    "<pad>",
    "汉",
    "",
    "<oov>",
    "b",
    "<eos>",
    " ",
    "字",
    "<bos>",
    "🙂",
    "<eow>",
    "S",
    "<",
)
"""A character table whose marks do not come first, with an id without a character."""
VOCABULARY = ("<S>", "</S>", "<UNK>", "the", "cat", "", "The", "汉字", "cat", "aé", "b")
"""The marks, then words; one is blank, one is repeated, one occurs in two cases."""

LIKELY = (
    "",
    "<S>",
    "</S>",
    "<UNK>",
    "the",
    "The",
    "THE",
    "cat",
    "Cat",
    "cats",
    "汉字",
    "汉字" * 20,
    "🙂",
    "👩‍👩‍👧",
)
LONE_SURROGATES = ("\ud800", "a\udfffb", "\udc80\udc80")
LONG = ("ab" * 35, "é" * 47 + "a", "字" * 64)


def characters() -> st.SearchStrategy[str]:
    """Any code point, including lone surrogates."""
    return st.characters(exclude_categories=())


def tokens() -> st.SearchStrategy[str]:
    """Any token; those known to cause trouble are drawn often."""
    return st.one_of(
        st.sampled_from(LIKELY),
        st.sampled_from(LONE_SURROGATES),
        st.sampled_from(LONG),
        st.text("abéS< 汉字", max_size=7),
        st.text(characters(), max_size=9),
    )


def sentences(max_tokens: int = 6) -> st.SearchStrategy[list[str]]:
    """A sentence, which may be empty."""
    return st.lists(tokens(), max_size=max_tokens)


def texts(min_sentences: int = 1, max_sentences: int = 4) -> st.SearchStrategy[list[list[str]]]:
    """Some sentences, mostly of unequal length."""
    return st.lists(sentences(), min_size=min_sentences, max_size=max_sentences)


def seeds() -> st.SearchStrategy[int]:
    """Seeds for random numbers that need not shrink."""
    return st.integers(0, 2**32 - 1)


def clips() -> st.SearchStrategy[float | None]:
    """No clip, or one so small that ordinary values reach it."""
    return st.none() | st.sampled_from((0.05, 0.1, 0.2, 0.5))


@st.composite
def chars_configs(draw: st.DrawFn, kind: Literal["bytes", "unicode"]) -> CharsConfig:
    filters = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=3))
    least = max(3, *(w for w, _ in filters))
    return CharsConfig(
        kind=kind,
        rows=261 if kind == "bytes" else len(ENTRIES),
        width=draw(st.integers(1, 3)),
        filters=tuple(filters),
        activation=draw(st.sampled_from(("relu", "tanh"))),
        highways=draw(st.integers(0, 2)),
        max_characters=draw(st.none() | st.integers(least, 12) | st.just(50)),
    )


@st.composite
def words_configs(draw: st.DrawFn, encoder: str) -> WordsConfig:
    """A word encoder of one of the kinds in ENCODERS."""
    kinds = encoder.split(" and ")
    encoders: tuple[Literal["bytes", "unicode"], ...] = ("bytes", "unicode")
    chars = [draw(chars_configs(kind)) for kind in encoders if kind in kinds]
    tables = [
        TableConfig(
            rows=len(VOCABULARY),
            width=draw(st.integers(1, 4)),
            given=kind == "given",
            tuned=draw(st.booleans()),
            lower=draw(st.booleans()),
        )
        for kind in kinds
        if kind in ("table", "given")
    ]
    return WordsConfig(
        chars=chars[0] if chars else None,
        table=tables[0] if tables else None,
        project=draw(st.booleans()),
        highways=draw(st.integers(0, 2)),
    )


@st.composite
def cell_configs(draw: st.DrawFn, cell: str, width: int) -> CellConfig:
    """A cell of one of the kinds in CELLS."""
    if cell == "rnn" or cell == "gru":
        kind: Literal["rnn", "gru"] = "rnn" if cell == "rnn" else "gru"
        return CellConfig(kind=kind, cells=width, project=False, cell_clip=None, projection_clip=None)
    project = cell == "lstm with projection"
    return CellConfig(
        cells=draw(st.integers(1, 5)) if project else width,
        project=project,
        cell_clip=draw(clips()),
        projection_clip=draw(clips()) if project else None,
        forget_bias=draw(st.sampled_from((1.0, 0.0, -0.5))),
    )


@st.composite
def configs(draw: st.DrawFn, encoder: str | None = None, cell: str | None = None) -> BiLMConfig:
    """A small network: of a given encoder and cell, or of any."""
    words = draw(words_configs(encoder or draw(st.sampled_from(ENCODERS))))
    width = draw(st.integers(1, 5)) if words.project else words.outputs
    return BiLMConfig(
        words=words,
        cell=draw(cell_configs(cell or draw(st.sampled_from(CELLS)), width)),
        width=width,
        layers=draw(st.integers(1, 3)),
        skip=draw(st.booleans()),
        directions=draw(st.sampled_from((("forward", "backward"), ("forward",), ("backward",)))),
    )


def indexer_of(config: BiLMConfig) -> Indexer:
    """The indexer that goes with a drawn config."""
    chars, table = config.words.chars, config.words.table
    spelling = None
    if chars is not None:
        bound = chars.max_characters
        spelling = ByteChars(bound) if chars.kind == "bytes" else CharTable(ENTRIES, bound)
    return Indexer(
        chars=spelling,
        vocab=Vocab(VOCABULARY) if table else None,
        lower=table.lower if table else False,
        widest_filter=chars.widest_filter if chars else 1,
    )


def random_bilm(config: BiLMConfig, seed: int, dtype: torch.dtype = torch.float32) -> BiLM:
    """A network whose values neither vanish nor saturate the gates; no bias is 0."""
    bilm = BiLM(config).to(dtype)
    random = np.random.default_rng(seed)
    with torch.no_grad():
        for name, parameter in bilm.named_parameters():
            rows_of_a_table = name.endswith(("table", "table.weight", "marks"))
            fan_in = 1 if parameter.ndim == 1 or rows_of_a_table else parameter[0].numel()
            parameter.copy_(torch.from_numpy(random.normal(size=parameter.shape) * fan_in**-0.5))
    return bilm

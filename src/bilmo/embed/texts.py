"""Raw text to sentences in the way a model learned to read, and back: the tokens with their vectors.

Knows: text, vocab. Blind to: networks, files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bilmo.errors import ConfigError
from bilmo.ids.batch import Sentence
from bilmo.ids.vocab import Vocab
from bilmo.text.split import Split, Splitter, detect, splitter

Floats = NDArray[np.floating[Any]]
"""Vectors in the precision that was asked for."""


class Embedded(NamedTuple):
    """A text that was split: its tokens, and their vectors (tokens, width), or one vector where they were pooled."""

    tokens: list[str]
    vectors: Floats


def splitting(how: str, vocab: Vocab | None) -> Splitter:
    """A text to its sentences, of which there is always one, be it empty.

    "auto" looks at each text alone, so that its tokens never depend on the texts beside it.
    """
    if how != "auto":
        splitter(how)  # a name that is unknown is refused here, not at the first text

    def split(text: str) -> list[list[str]]:
        name = how if how != "auto" else as_learned(detect([text]), vocab, otherwise="en")
        return splitter(name)(text) or [[]]

    return split


def as_learned(how: Split, vocab: Vocab | None, *, otherwise: Split) -> Split:
    """English rules cut do|n't and he|'s in two; which a model knows, its vocabulary tells, where it has one."""
    if how not in ("en", "west"):
        return how
    if vocab is None:
        return otherwise
    return "en" if "n't" in vocab else "west"


def finished(parts: list[Floats], pool: str, dtype: str) -> Floats:
    """The vectors of a text from those of its sentences: put in a row, pooled, in the precision asked for.

    A text of no tokens pools to zeros.
    """
    joined = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-2)
    if pool != "none":
        if not joined.shape[-2]:
            joined = np.zeros((*joined.shape[:-2], joined.shape[-1]), dtype=np.float32)
        else:
            joined = joined.mean(axis=-2) if pool == "mean" else joined.max(axis=-2)
    return joined.astype(dtype, copy=False)


LONG_WORD = 64
"""Characters of a word that count as one more token: its memory grows with its length."""


def weight(sentences: Sequence[Sentence]) -> int:
    """Tokens of a text, boundaries included; very long words count as several."""
    return sum(2 + sum(1 + len(word) // LONG_WORD for word in sentence) for sentence in sentences)


Item = TypeVar("Item")


def gathered(
    texts: Iterable[tuple[Item, list[Sentence]]], most: int
) -> Iterator[tuple[list[Item], list[list[Sentence]]]]:
    """Texts and their sentences, as many at a time as have `most` tokens together, or a single one that has more."""
    items: list[Item] = []
    rows: list[list[Sentence]] = []
    tokens = 0
    for item, row in texts:
        if rows and tokens + weight(row) > most:
            yield items, rows
            items, rows, tokens = [], [], 0
        items.append(item)
        rows.append(row)
        tokens += weight(row)
    if rows:
        yield items, rows


def check(pool: str, dtype: str) -> None:
    """Refuse what is no way to pool and no precision."""
    for name, value, known in (("pool", pool, ("none", "mean", "max")), ("dtype", dtype, ("float32", "float16"))):
        if value not in known:
            raise ConfigError(f"{name} is {value!r}; known are {', '.join(known)}")

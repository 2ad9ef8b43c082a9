"""Raw text to sentences, split as in the text that a model was trained on; and vectors of sentences to those of texts.

Knows: text, vocab. Blind to: networks, files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bilmo.errors import OutputError
from bilmo.ids.batch import Sentence
from bilmo.ids.vocab import Vocab
from bilmo.text.dictionary import Dictionary
from bilmo.text.split import Splitter, detect, splitter

Floats = NDArray[np.floating[Any]]
"""Vectors in the requested precision."""


ArrayT = TypeVar("ArrayT")
"""A numpy array, or a tensor."""


class Embedded(NamedTuple, Generic[ArrayT]):
    """A text that was split: its tokens, and their vectors (tokens, width)."""

    tokens: list[str]
    vectors: ArrayT


SPLIT_RULES = ("en", "west", "zh")
"""Values of `lang` that split raw text."""


def splitter_for(lang: str, model_lang: str, vocab: Vocab | None, dictionary: Dictionary | None = None) -> Splitter:
    """A function from a text to its sentences; an empty text is one empty sentence.

    "auto" keeps the tokens of a text that is already tokenized, and splits all other text as the training text of the
    model was split. If the model does not say how, the language of each text is detected. Either way the tokens of a
    text never depend on other texts.
    """
    if lang != "auto":
        splitter(lang)  # refuses an unknown name now, not at the first text

    def split(text: str) -> list[list[str]]:
        how = _lang_of(text, model_lang, vocab) if lang == "auto" else lang
        return splitter(how, dictionary)(text) or [[]]

    return split


def _lang_of(text: str, model_lang: str, vocab: Vocab | None) -> str:
    found = detect([text])
    if found == "spaces":
        return found
    if model_lang in SPLIT_RULES:
        return model_lang
    if found == "zh":
        return found
    # English rules split do|n't and he|'s. The vocabulary, if there is one, shows whether a model was trained so.
    return "en" if vocab is None or "n't" in vocab else "west"


def joined(parts: list[Floats], pool: str, dtype: str, *, normalize: bool = False) -> Floats:
    """The vectors of a text from those of its sentences: concatenated, pooled, in the requested precision.

    A text without tokens pools to zeros. `normalize` gives vectors of length 1; zeros stay zeros.
    """
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-2)
    if pool != "none":
        if not whole.shape[-2]:
            whole = np.zeros((*whole.shape[:-2], whole.shape[-1]), dtype=np.float32)
        else:
            whole = whole.mean(axis=-2) if pool == "mean" else whole.max(axis=-2)
    if normalize:
        lengths = np.linalg.norm(whole, axis=-1, keepdims=True)
        whole = whole / np.where(lengths == 0, 1, lengths)
    return _rounded(whole) if dtype == "float16" else whole


def _rounded(values: Floats) -> Floats:
    """Vectors in float16. A value beyond its range is refused, because it would become infinite."""
    with np.errstate(over="ignore"):  # refused below
        found = values.astype(np.float16)
    too_large = values[np.isinf(found) & np.isfinite(values)]
    if len(too_large):
        raise OutputError(
            f"a vector has the value {too_large[0]:,.6g}, but float16 holds at most {np.finfo(np.float16).max:,.0f}. "
            "Use dtype float32 (--dtype float32 on the command line)."
        )
    return found


LONG_WORD = 64
"""Characters of a word that count as one more token, because memory grows with its length."""


def token_count(sentences: Sequence[Sentence]) -> int:
    """Tokens of a text, boundaries included; a very long word counts as several."""
    return sum(2 + sum(1 + len(word) // LONG_WORD for word in sentence) for sentence in sentences)


Item = TypeVar("Item")


def gathered(
    texts: Iterable[tuple[Item, list[Sentence]]], most: int
) -> Iterator[tuple[list[Item], list[list[Sentence]]]]:
    """Groups of texts and their sentences, each of at most `most` tokens, or of a single text that has more."""
    items: list[Item] = []
    rows: list[list[Sentence]] = []
    tokens = 0
    for item, row in texts:
        if rows and tokens + token_count(row) > most:
            yield items, rows
            items, rows, tokens = [], [], 0
        items.append(item)
        rows.append(row)
        tokens += token_count(row)
    if rows:
        yield items, rows

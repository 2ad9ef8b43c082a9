"""gensim: the words of a model or of a text as KeyedVectors.

Knows: Embedder, words by their uses, gensim. Blind to: gensim's training.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from bilmo.embed.embedder import Embedder
from bilmo.embed.load import load
from bilmo.embed.word_space import CANDIDATES, WordSpace, whitened
from bilmo.errors import TextError, need
from bilmo.ids.batch import Sentence, listed
from bilmo.sense.uses import WordVectors, in_text
from bilmo.text import files

Words = str | Path | Iterable[str] | Iterable[Path] | Iterable[Sentence]


def to_keyed_vectors(
    model: str | PathLike[str] | Embedder, of: Words | None = None, *, min_count: int = 1, lang: str = "auto"
) -> Any:
    """A gensim KeyedVectors with one vector of length 1 for each word.

    of: which words, and how they get their vectors.

    - None: the first 20,000 words of the model's vocabulary, without context.
    - A list of words: these words, without context. If one of them is not in the vocabulary, all are compared by
      spelling alone.
    - A text (one string), a Path or several of text files or folders, or a list of sentences that are lists of tokens:
      the words of this text, each as the mean of its contextual vectors, as in `bilmo similar --in`.

    `most_similar` of the result gives the words and cosines of `Embedder.most_similar` and of `bilmo similar`.

    min_count: with a text, words that occur less often are left out.
    lang: how raw text becomes tokens, as in `bilmo.load`.
    """
    keyed = need("gensim.models", extra="gensim", purpose="to_keyed_vectors")
    elmo = model if isinstance(model, Embedder) else load(model, lang=lang)
    found = _vectors(elmo, of, min_count)
    made = keyed.KeyedVectors(vector_size=found.values.shape[1], count=0)
    made.add_vectors(found.words, found.values)
    return made


def _vectors(elmo: Embedder, of: Words | None, min_count: int) -> WordVectors:
    if of is None:
        space = WordSpace(elmo, CANDIDATES)
        return WordVectors(space.words, space.vectors(space.words))
    if isinstance(of, str | Path):
        given: list[Any] = [of]
        text = True
    else:
        given = list(of)
        text = not all(isinstance(one, str) for one in given)
    words = [] if text else list(dict.fromkeys(given))
    used = in_text(elmo, _sentences(elmo, given), least=min_count) if text else None
    if not words and (used is None or not used.words):
        raise TextError("there are no words to give vectors to; give a list of words or a text, or lower min_count")
    if used is not None:
        return used
    if elmo.bundle.vocab is None:  # nothing to compare with but these words themselves
        return WordVectors(words, whitened(elmo.word_vectors(words)))
    space = WordSpace(elmo, CANDIDATES)
    return WordVectors(words, space.vectors(words, spelled=space.by_spelling(words)))


def _sentences(elmo: Embedder, given: list[Any]) -> Iterator[Sentence]:
    """The sentences of a text, of files, or those that were given as tokens."""
    for one in given:
        if isinstance(one, Path):
            for line in files.all_lines([one]):
                yield from elmo.split(line) if line.strip() else ()
        elif isinstance(one, str):
            yield from elmo.split(one)
        else:
            yield from listed([one])

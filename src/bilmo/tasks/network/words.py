"""Word vectors of a task's own: from a file, or trained from scratch.

Knows: vectors files, Vocab. Blind to: heads, data files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bilmo.errors import ConfigError
from bilmo.ids.batch import Sentence
from bilmo.ids.vocab import MARKS, Vocab
from bilmo.net.config import TableConfig
from bilmo.store import vectors_file as files
from bilmo.store.vectors_file import Vectors

SCRATCH = "scratch"
MOST = 400_000
"""Words that are taken from a file; files begin with the most frequent ones."""
UNKNOWN = "<unk>"
"""What files of vectors call the vector of words that they lack."""
RARE = 2
"""From scratch, words that are rarer teach the vector of unknown words."""


@dataclass(frozen=True)
class TaskWords:
    """A vocabulary, and a vector for each of its words where they are given."""

    vocab: Vocab
    width: int
    lower: bool
    values: NDArray[np.float32] | None
    """(words, width); None where they are trained."""

    @property
    def table(self) -> TableConfig:
        """The shape of the table; given vectors stay as they came, but for those of the marks."""
        given = self.values is not None
        return TableConfig(rows=len(self.vocab), width=self.width, given=given, tuned=not given, lower=self.lower)

    @property
    def source(self) -> Vectors | str:
        """What they were made of, to fit a task like this one again."""
        if self.values is None:
            return SCRATCH
        names, values = list(self.vocab.words[len(MARKS) :]), self.values[len(MARKS) :]
        if UNKNOWN in names:
            return Vectors(names, values)
        return Vectors([UNKNOWN, *names], np.concatenate([self.values[[self.vocab.unknown]], values]))


def loaded(source: Vectors | PathLike[str] | str) -> Vectors | str:
    """A file read once, for tasks that share it; anything else as it is."""
    if isinstance(source, Vectors) or (isinstance(source, str) and source == SCRATCH):
        return source
    if not isinstance(source, str | PathLike):
        raise ConfigError(
            f"vectors is a {type(source).__name__}; needed is the path of a GloVe or word2vec file, what "
            f"bilmo.store.vectors_file.read gives, or {SCRATCH!r} to learn them"
        )
    return files.read(Path(source), most=MOST)


def identity(source: Vectors | PathLike[str] | str | None) -> str:
    """What tells word vectors from others: a SHA-256 of given ones; `scratch` for learned ones; empty for none."""
    given = loaded(source) if source is not None else ""
    if isinstance(given, str):
        return given
    digest = hashlib.sha256("\n".join(given.words).encode("utf-8", "surrogatepass"))
    digest.update(np.ascontiguousarray(given.values).data)
    return digest.hexdigest()


def words_of(source: Vectors | PathLike[str] | str, sentences: Iterable[Sentence], width: int) -> TaskWords:
    """Word vectors from a file or in memory, or a vocabulary to train them for."""
    given = loaded(source)
    if isinstance(given, str):
        return TaskWords(Vocab.count(sentences, min_count=RARE), width, lower=False, values=None)
    vocab, values = given.table()
    return TaskWords(vocab, values.shape[1], given.lower, values)

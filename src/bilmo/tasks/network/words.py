"""The task's own word vectors: from a file, or trained from scratch.

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
"""The number of words read from a file; such files list the most frequent words first."""
UNKNOWN = "<unk>"
"""The name that vector files give to the vector of unknown words."""
MIN_COUNT = 2
"""When vectors are trained from scratch, rarer words train the vector of unknown words."""


@dataclass(frozen=True)
class TaskWords:
    """A vocabulary, and one vector per word where vectors are given."""

    vocab: Vocab
    width: int
    lower: bool
    values: NDArray[np.float32] | None
    """(words, width); None where they are trained."""

    @property
    def table(self) -> TableConfig:
        """The shape of the table; given vectors stay fixed, except those of the marks."""
        given = self.values is not None
        return TableConfig(rows=len(self.vocab), width=self.width, given=given, tuned=not given, lower=self.lower)

    @property
    def source(self) -> Vectors | str:
        """The `vectors` argument that gives a task the same vectors."""
        if self.values is None:
            return SCRATCH
        names, values = list(self.vocab.words[len(MARKS) :]), self.values[len(MARKS) :]
        if UNKNOWN in names:
            return Vectors(names, values)
        return Vectors([UNKNOWN, *names], np.concatenate([self.values[[self.vocab.unknown]], values]))


def load_vectors(source: Vectors | PathLike[str] | str) -> Vectors | str:
    """The vectors of a file, read once for all tasks that share them; other sources are returned unchanged."""
    if isinstance(source, Vectors) or (isinstance(source, str) and source == SCRATCH):
        return source
    if not isinstance(source, str | PathLike):
        raise ConfigError(
            f"vectors is a {type(source).__name__}; give the path of a GloVe or word2vec file, the result of "
            f"bilmo.store.vectors_file.read, or {SCRATCH!r} to train them with the task"
        )
    return files.read(Path(source), most=MOST)


def identity(source: Vectors | PathLike[str] | str | None) -> str:
    """What identifies word vectors: the SHA-256 of given ones, `scratch` for trained ones, empty for none."""
    given = load_vectors(source) if source is not None else ""
    if isinstance(given, str):
        return given
    digest = hashlib.sha256("\n".join(given.words).encode("utf-8", "surrogatepass"))
    digest.update(np.ascontiguousarray(given.values).data)
    return digest.hexdigest()


def words_of(source: Vectors | PathLike[str] | str, sentences: Iterable[Sentence], width: int) -> TaskWords:
    """Word vectors from a file or from memory, or the vocabulary to train them for."""
    given = load_vectors(source)
    if isinstance(given, str):
        return TaskWords(Vocab.count(sentences, min_count=MIN_COUNT), width, lower=False, values=None)
    vocab, values = given.table()
    return TaskWords(vocab, values.shape[1], given.lower, values)

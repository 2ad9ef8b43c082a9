"""Vectors of senses: the mean vector of the uses of each sense in labelled text.

Knows: Embedder, labelled sentences. Blind to: files, how a sense is chosen.
"""

# N uses, S senses, W width of a vector

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bilmo.embed.embedder import Embedder
from bilmo.embed.word_space import Whitening
from bilmo.errors import ConfigError, TextError
from bilmo.net.config import STRICT
from bilmo.net.mix import How, Mix
from bilmo.sense.labelled.corpus import Marked

Floats = NDArray[np.float32]

BATCH_SENTENCES = 500
"""Number of sentences embedded at a time."""
WHITENING_SENTENCES = 4_000
"""Number of sentences, drawn from all, by whose uses the vectors are whitened."""


@dataclass(frozen=True, kw_only=True)
class SenseSettings:
    """How senses are compared."""

    __pydantic_config__ = STRICT

    mix: How = "top"
    """Layers that are compared: `top`, `mean`, `concat`, or the number of a layer."""
    whiten: bool = True
    """Whether vectors are centred and whitened before they are compared."""
    prior: float = 0.1
    """Added to a cosine for each sense: this times the logarithm of its number of uses. 0: by the vectors alone."""

    def __post_init__(self) -> None:
        if not 0 <= self.prior < float("inf"):
            raise ConfigError(f"prior is {self.prior}; it must be 0 or more")


@dataclass
class Learning:
    """Sense vectors while they are computed; `done` sentences are in them."""

    elmo: Embedder
    sentences: Sequence[Marked]
    settings: SenseSettings
    keys: list[str] = field(init=False)
    """The senses that occur, sorted."""
    counts: NDArray[np.int64] = field(init=False)
    """(S,): the number of uses."""
    sums: Floats = field(init=False)
    """(S, W): the sum of the vectors of the uses."""
    whitening: Whitening | None = field(default=None, init=False)
    done: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.elmo.start == "carry":
            raise ConfigError("sense vectors need a model whose sentences are independent; load it without start=carry")
        self.keys = sorted({key for one in self.sentences for use in one.uses for key in use.senses})
        if not self.keys:
            raise TextError("the training text has no labelled words")
        self._numbers = {key: number for number, key in enumerate(self.keys)}
        self.counts = np.zeros(len(self.keys), dtype=np.int64)
        width = Mix.for_network(self.elmo.config, self.settings.mix).output_width
        self.sums = np.zeros((len(self.keys), width), dtype=np.float32)

    def steps(self) -> Iterator[int]:
        """Embed the rest of the sentences, some at a time; yields how many are done."""
        if self.settings.whiten and self.whitening is None:
            self.whitening = self._sampled_whitening()
        while self.done < len(self.sentences):
            some = self.sentences[self.done : self.done + BATCH_SENTENCES]
            vectors = vectors_of(self.elmo, some, self.settings.mix, self.whitening)
            for use, vector in zip((use for one in some for use in one.uses), vectors, strict=True):
                for key in use.senses:
                    self.sums[self._numbers[key]] += vector
                    self.counts[self._numbers[key]] += 1
            self.done += len(some)
            yield self.done

    def _sampled_whitening(self) -> Whitening:
        """The whitening of the uses in some sentences, the same ones every time."""
        chosen = random.Random(0).sample(range(len(self.sentences)), min(len(self.sentences), WHITENING_SENTENCES))
        found = [self.sentences[number] for number in sorted(chosen)]
        if not any(one.uses for one in found):
            found = list(self.sentences)
        return Whitening.of(vectors_of(self.elmo, found, self.settings.mix))


def vectors_of(elmo: Embedder, sentences: Iterable[Marked], mix: How, whitening: Whitening | None = None) -> Floats:
    """(N, W): the vectors of all uses, one after the other; that of several tokens is their mean."""
    given = [one for one in sentences if one.uses]
    found = elmo.embed([one.tokens for one in given], mix=mix)
    rows = [
        values[use.begin : use.end].mean(axis=0) for one, values in zip(given, found, strict=True) for use in one.uses
    ]
    width = Mix.for_network(elmo.config, mix).output_width
    vectors = np.stack(rows) if rows else np.empty((0, width), dtype=np.float32)
    return whitening.apply(vectors) if whitening is not None else vectors

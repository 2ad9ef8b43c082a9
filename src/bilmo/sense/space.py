"""The vectors of uses, ready to be compared: which layers, centred, whitened, of length 1.

A use is a word at one place of a sentence. The raw vectors of a language model share a large common part, so that the
cosines of unrelated uses are high. A `Space` takes that part out, with statistics of the text that is searched;
`benchmarks/quality/senses.py` compares the choices.

    space = Space.of_files(elmo, paths)
    for place, vectors in space.uses(elmo, in_files(elmo, paths)):
        ...                                    # one vector of length 1 for each of place.words
    vector = space.vector(elmo, *marked(elmo.split, "He sat on the [bank]."))

Knows: Embedder, places. Blind to: what is searched for.
"""

# N uses, W width of a vector

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bilmo.embed.embedder import Embedder
from bilmo.embed.word_space import Whitening
from bilmo.errors import TextError
from bilmo.ids.batch import Sentence
from bilmo.net.mix import How
from bilmo.sense.places import Place, in_line
from bilmo.text.files import all_lines

Floats = NDArray[np.float32]

MIX: How = "mean"
"""The layers that are compared."""
SAMPLE_LINES, SAMPLE_CHARACTERS, SAMPLE_WORDS = 4_000, 2_000, 20_000
"""Of a text, for the statistics: lines that are drawn, how much of each is read, and words that are embedded."""
BATCH_WORDS = 1 << 13
"""Words embedded at a time."""


@dataclass(frozen=True)
class Space:
    """A mix of layers, and the statistics with which its vectors are made comparable."""

    mix: How
    whitening: Whitening

    @classmethod
    def of_files(cls, elmo: Embedder, paths: Iterable[Path], mix: How = MIX) -> Space:
        """The space of a text: its statistics are those of a sample of its uses, the same in every run."""
        return cls.of_lines(elmo, all_lines(paths), mix)

    @classmethod
    def of_lines(cls, elmo: Embedder, lines: Iterable[str], mix: How = MIX) -> Space:
        """The same for lines of text, of which a sample is in memory."""
        vectors: list[Floats] = []
        words = 0
        places = (place for line in sampled(lines) for place in in_line(elmo, line))
        for _, some in embedded(elmo, places, mix):
            vectors.append(some)
            words += len(some)
            if words >= SAMPLE_WORDS:
                break
        if not words:
            raise TextError("there is no word in the text; every line is blank or has only punctuation")
        return cls(mix, Whitening.of(np.concatenate(vectors)))

    def uses(self, elmo: Embedder, places: Iterable[Place]) -> Iterator[tuple[Place, Floats]]:
        """Sentences of any number, in their order, each with the vectors (N, W) of its words."""
        return ((place, self.whitening.apply(vectors)) for place, vectors in embedded(elmo, places, self.mix))

    def vector(self, elmo: Embedder, sentence: Sentence, position: int) -> Floats:
        """The vector (W,) of one token of a sentence."""
        return self.whitening.apply(elmo.embed([sentence], mix=self.mix)[0][position])


def embedded(elmo: Embedder, places: Iterable[Place], mix: How) -> Iterator[tuple[Place, Floats]]:
    """Sentences of any number, in their order, each with the raw vectors (N, W) of its words."""
    rest = iter(places)
    while some := list(_batch(rest)):
        vectors = elmo.embed([place.tokens for place in some], mix=mix)
        yield from ((place, values[place.words]) for place, values in zip(some, vectors, strict=True))


def _batch(places: Iterator[Place]) -> Iterator[Place]:
    words = 0
    while words < BATCH_WORDS and (found := list(islice(places, 1))):
        words += len(found[0].tokens)
        yield found[0]


def sampled(lines: Iterable[str]) -> list[str]:
    """The beginnings of some lines, drawn from all lines that are not blank, in random order; the same every time."""
    chosen = random.Random(0)
    kept: list[str] = []
    for number, line in enumerate(line for line in lines if line.strip()):
        where = number if number < SAMPLE_LINES else chosen.randrange(number + 1)
        if where < SAMPLE_LINES:
            kept[where : where + 1] = [line[:SAMPLE_CHARACTERS]]
    chosen.shuffle(kept)
    return kept

"""The Disambiguator: which sense each word of a text has.

A word gets the sense of its lemma whose vector is nearest by cosine, among the senses of the training text (Peters et
al. 2018, section 5.3). A lemma that the training text does not have gets its first sense in the inventory, and the
result says so.

Knows: Embedder, sense vectors, the inventory. Blind to: saved folders, the command line.
"""

# N uses, S senses, W width of a vector

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bilmo import progress as bars
from bilmo.embed.embedder import Embedder
from bilmo.embed.word_space import Whitening, unit
from bilmo.errors import ConfigError, TextError
from bilmo.ids.batch import Sentence
from bilmo.net.mix import How
from bilmo.sense.labelled import corpus
from bilmo.sense.labelled.corpus import Marked
from bilmo.sense.labelled.forms import Forms
from bilmo.sense.labelled.inventory import Inventory, Lemma, lemma_of, topic_of
from bilmo.sense.labelled.learn import BATCH_SENTENCES, Floats, Learning, SenseSettings, vectors_of
from bilmo.sense.labelled.measure import sense_score
from bilmo.tasks.core.measure import Score


@dataclass(frozen=True)
class WordSense:
    """The sense of a word in a sentence."""

    begin: int
    end: int
    """begin and end: positions of its tokens; the end is not included."""
    text: str
    """The word as it is written."""
    lemma: str
    pos: str
    """n, v, a or r."""
    sense: str
    """The sense key."""
    fallback: bool
    """Whether the training text has no sense of this word, so that it got its first sense in the inventory."""
    topic: str
    """The name of WordNet's file of the sense, such as noun.group."""
    synonyms: tuple[str, ...]
    """Other words with this sense."""


class Learned:
    """The vectors and tables learned from labelled text."""

    def __init__(
        self,
        keys: Sequence[str],
        counts: NDArray[np.int64],
        vectors: Floats,
        whitening: Whitening | None,
        inventory: Inventory,
        forms: Forms,
    ) -> None:
        """`counts` (S,) and `vectors` (S, W), of length 1, belong to the sense keys."""
        self.keys, self.counts, self.vectors = list(keys), counts, vectors
        self.whitening, self.inventory, self.forms = whitening, inventory, forms
        self._numbers: dict[Lemma, list[int]] = defaultdict(list)
        for number, key in enumerate(self.keys):
            self._numbers[lemma_of(key)].append(number)

    def choose(self, lemmas: Iterable[Lemma], vector: Floats, prior: float) -> tuple[str | None, bool]:
        """The sense of a word that may belong to several lemmas, and whether it is only the first sense.

        None for a word that neither the training text nor the inventory has.
        """
        lemmas = list(lemmas)
        numbers = [number for lemma in lemmas for number in self._numbers.get(lemma, ())]
        if numbers:
            scores = self.vectors[numbers] @ vector + prior * np.log(self.counts[numbers])
            return self.keys[numbers[int(np.argmax(scores))]], False
        listed = [sense for lemma in lemmas for sense in self.inventory.senses(lemma)[:1]]
        return (max(listed, key=lambda sense: sense.tagged).key if listed else None), True


class Disambiguator:
    """Finds the sense of each word in its sentence.

    >>> senses = Disambiguator(elmo).fit("semcor.jsonl", "index.sense")        # doctest: +SKIP
    >>> senses.predict(["He sat on the bank of the river."])                   # doctest: +SKIP
    """

    def __init__(self, elmo: Embedder, *, mix: How = "top", whiten: bool = True, prior: float = 0.1) -> None:
        """`bilmo.sense.labelled.learn.SenseSettings` explains the settings."""
        self.elmo = elmo
        self.settings = SenseSettings(mix=mix, whiten=whiten, prior=prior)
        self._learned: Learned | None = None

    def fit(
        self,
        train: str | PathLike[str],
        inventory: str | PathLike[str],
        *,
        gold: str | PathLike[str] | None = None,
        progress: bool = False,
    ) -> Self:
        """Learn the vectors of senses from a file of labelled sentences; this takes minutes for SemCor.

        train: SemCor as JSON lines, or XML with a file of gold keys.
        inventory: WordNet's index.sense.
        gold: the keys of an XML file.
        progress: show a progress bar on a terminal or in a notebook.
        """
        listed = Inventory.read(Path(inventory))
        sentences = corpus.read(Path(train), Path(gold) if gold is not None else None)
        learning = Learning(self.elmo, sentences, self.settings)
        with bars.share_done("learning senses", len(sentences), show=progress) as update:
            for done in learning.steps():
                update(done)
        return self.use(learning, listed)

    def use(self, learning: Learning, inventory: Inventory) -> Self:
        """Take over sense vectors that are complete."""
        forms = Forms.learn(learning.sentences, inventory)
        return self.restore(
            Learned(learning.keys, learning.counts, unit(learning.sums), learning.whitening, inventory, forms)
        )

    def restore(self, learned: Learned) -> Self:
        """Take over what was learned before."""
        self._learned = learned
        return self

    @property
    def learned(self) -> Learned:
        """The vectors and tables that `fit` learned; an error before `fit`."""
        if self._learned is None:
            raise ConfigError("this Disambiguator has learned no senses yet; call fit first")
        return self._learned

    def predict(self, texts: Iterable[str] | Iterable[Sentence]) -> list[list[WordSense]]:
        """For each text the words that have senses, in order.

        A string is one sentence or several, and is split; positions count all of its tokens. A list of tokens is one
        sentence. Lemmas are found by a table of forms of the training text, and by WordNet's rules.
        """
        learned = self.learned
        found: list[list[WordSense]] = []
        places: list[tuple[int, int]] = []  # of each sentence: its text, and the tokens before it
        marked: list[Marked] = []
        lemmas: list[list[Lemma]] = []
        for text in texts:
            before = 0
            for tokens in map(list, self.elmo.sentences(text)):
                uses = list(learned.forms.uses(tokens))
                places.append((len(found), before))
                marked.append(Marked(tokens, [use for use, _ in uses]))
                lemmas += [possible for _, possible in uses]
                before += len(tokens)
            found.append([])
        rows = iter(zip(lemmas, self._vectors(marked), strict=True))
        for (number, before), one in zip(places, marked, strict=True):
            for use in one.uses:
                key, fallback = learned.choose(*next(rows), self.settings.prior)
                if key is not None:
                    text = " ".join(one.tokens[use.begin : use.end])
                    found[number].append(self._sense(key, use.begin + before, use.end + before, text, fallback))
        return found

    def _sense(self, key: str, begin: int, end: int, text: str, fallback: bool) -> WordSense:
        lemma = lemma_of(key)
        synonyms = tuple(self.learned.inventory.synonyms(key))
        return WordSense(begin, end, text, lemma.name, lemma.pos, key, fallback, topic_of(key), synonyms)

    def choose(self, sentences: Sequence[Marked]) -> list[tuple[str | None, bool]]:
        """For each marked word, one after the other: its sense, and whether that is only the first sense."""
        learned = self.learned
        found = []
        for at in range(0, len(sentences), BATCH_SENTENCES):
            some = sentences[at : at + BATCH_SENTENCES]
            uses = [use for one in some for use in one.uses]
            for use, vector in zip(uses, self._vectors(some), strict=True):
                found.append(learned.choose([use.lemma], vector, self.settings.prior))
        return found

    def score(self, data: str | PathLike[str], gold: str | PathLike[str] | None = None, *, form: str = "auto") -> Score:
        """Precision, recall and F1 on marked words whose lemmas are given, as the official scorer counts them.

        data, gold: a file of marked words, and the file of gold keys if it is XML; `form` is xml, jsonl or auto.
        """
        sentences = corpus.read(Path(data), Path(gold) if gold is not None else None, form)
        uses = [use for one in sentences for use in one.uses]
        if not any(use.senses for use in uses):
            raise TextError(f"{data}: the senses of its words are not known; give the file of gold keys")
        return sense_score(uses, self.choose(sentences), self.learned.inventory)

    def save(self, folder: str | PathLike[str], *, model: str = "") -> None:
        """Save to a new folder; `model` is the path or name of the biLM, which is loaded again with it."""
        from bilmo.sense.labelled import folder as folders

        folders.save(self, folder, model=model)

    @classmethod
    def load(cls, folder: str | PathLike[str], *, elmo: Embedder | str | PathLike[str] | None = None) -> Disambiguator:
        """Load what `save` or `bilmo fit senses` wrote; `elmo` is its biLM, None for the recorded path."""
        from bilmo.sense.labelled import folder as folders

        return folders.load(folder, elmo=elmo)

    def _vectors(self, sentences: Sequence[Marked]) -> Floats:
        """(N, W): the vectors of all uses, of length 1."""
        return unit(vectors_of(self.elmo, sentences, self.settings.mix, self.learned.whitening))

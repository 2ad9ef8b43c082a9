"""What every task shares: settings, the way in, learning, answering; scikit-learn's manners.

A task says how its examples become texts and targets, which head stands on top, and how answers are measured.

Knows: the way in, the loop, word vectors, the cache. Blind to: files of examples, the command line.
"""

from __future__ import annotations

import copy
import hashlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from bilmo.embed.embedder import Embedder
from bilmo.errors import BilmoError, ConfigError, TextError
from bilmo.ids.batch import Indexer, by_length
from bilmo.ids.chars import ByteChars
from bilmo.net.config import BiLMConfig
from bilmo.store.vectors_file import Vectors
from bilmo.tasks.core.events import Computed, Epoch, Event, Prepared
from bilmo.tasks.core.loop import Fitting
from bilmo.tasks.core.measure import Score
from bilmo.tasks.core.settings import Settings, settings_of
from bilmo.tasks.network.feed import Feed, Text, TextBatch, length
from bilmo.tasks.network.input import CHAR_MOST, CHAR_WINDOW, LearnedMix, WayIn
from bilmo.tasks.network.layer_store import LayerStore
from bilmo.tasks.network.tuned import Tuned
from bilmo.tasks.network.words import TaskWords, words_of

AT_ONCE = 4096
"""Tokens, about, that are answered at a time."""
UNEQUAL = 10
"""A label that is so many times as frequent as another is told."""


class Task(ABC):
    """Fit, predict, score. The constructor only stores; what was learned has a name that ends in `_`."""

    name: ClassVar[str]
    kind: ClassVar[str | None] = None
    """Of estimator, as scikit-learn sees it; None for one that it has no name for."""
    best_: float
    """The measure on the examples it was judged by, at its best."""
    form_: str = ""
    """The form of the file that its examples came from, where there was one."""

    def __init__(
        self,
        elmo: Embedder | None = None,
        *,
        vectors: Vectors | str | PathLike[str] | None = None,
        cache: str | PathLike[str] | None = None,
        **settings: Any,
    ) -> None:
        """Store what the task is made of.

        elmo: a loaded model; None for a task without ELMo.
        vectors: a GloVe or word2vec file, loaded vectors, "scratch" to train them with the task, or None.
        cache: the folder where layers of data sets are kept; None for the user's own.
        The other settings are those of `bilmo.tasks.core.settings.Settings`, by name.
        """
        self.elmo, self.vectors, self.cache = elmo, vectors, cache
        self.settings = settings

    # What each task has to say

    @abstractmethod
    def _texts(self, raw: Sequence[Any]) -> list[Text]:
        """Examples as texts, split the way that was learned."""

    @abstractmethod
    def _checked(self, raw: Sequence[Any], answers: Sequence[Any], *, learned: bool) -> list[Any]:
        """Answers as plain values, all of a kind that can be learned, or of the kind that was `learned`."""

    @abstractmethod
    def _learn_forms(self, raw: Sequence[Any], answers: Sequence[Any], settings: Settings) -> list[str]:
        """Find out labels and how texts are split; returns what a user should know of them."""

    @abstractmethod
    def _counted(self, answers: Sequence[Any]) -> dict[str, int]:
        """How often each label occurs."""

    @abstractmethod
    def _known(self) -> set[str]:
        """The labels that were learned, as they are counted."""

    @abstractmethod
    def _head(self, way_in: WayIn, settings: Settings) -> nn.Module:
        """The head for what was learned of the labels."""

    @abstractmethod
    def _loss(self, batch: TextBatch, answers: Sequence[Any]) -> Tensor:
        """The mean loss of some examples."""

    @abstractmethod
    def _answer(self, batch: TextBatch) -> list[Any]:
        """What the network says."""

    @abstractmethod
    def _likely(self, batch: TextBatch) -> list[Any]:
        """How likely it holds each label."""

    @abstractmethod
    def measure(self, true: Sequence[Any], answers: Sequence[Any]) -> Score:
        """The task's own measure."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What was learned besides weights, as plain data to be saved."""

    @abstractmethod
    def _set_facts(self, facts: dict[str, Any]) -> None:
        """Put it back."""

    # scikit-learn's manners

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Everything that the constructor was given, defaults included."""
        given = {"elmo": self.elmo, "vectors": self.vectors, "cache": self.cache}
        return given | asdict(Settings()) | self.settings

    def set_params(self, **params: Any) -> Self:
        """Change some of it."""
        known = self.get_params()
        unknown = sorted(params.keys() - known.keys())
        if unknown:
            raise ConfigError(f"there is no setting {', '.join(unknown)}; known are {', '.join(known)}")
        for name in ("elmo", "vectors", "cache"):
            if name in params:
                setattr(self, name, params.pop(name))
        self.settings = self.settings | params
        return self

    def __sklearn_clone__(self) -> Self:
        """A task that has learned nothing, on the same model: models are shared, not copied."""
        return type(self)(self.elmo, vectors=self.vectors, cache=self.cache, **copy.deepcopy(self.settings))

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks, so it is there when this is called."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        classifies = self.kind == "classifier"
        return Tags(
            estimator_type=self.kind,
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags() if classifies else None,
            input_tags=InputTags(two_d_array=False, string=True),
        )

    def fit(self, texts: Sequence[Any], answers: Sequence[Any], *, dev: tuple[Any, Any] | None = None) -> Self:
        """Learn from examples; Ctrl-C keeps the best so far.

        dev: texts and answers to judge by; without them, some of the examples are split off.
        """
        judged = False
        try:
            for event in self.events(texts, answers, dev=dev):
                judged = judged or isinstance(event, Epoch)
        except KeyboardInterrupt:
            if not judged:
                raise
            warnings.warn("interrupted; the best so far is kept", stacklevel=2)
        return self

    def predict(self, texts: Sequence[Any]) -> list[Any]:
        """An answer for each text, in order."""
        return self._each(texts, self._answer)

    def predict_proba(self, texts: Sequence[Any]) -> Any:
        """For each text how likely the labels are, in the order of `labels_`."""
        return self._each(texts, self._likely)

    def score(self, texts: Sequence[Any], answers: Sequence[Any]) -> float:
        """The task's own measure on examples."""
        self._way_in()
        raw, true = self._examples(texts, answers, learned=True)
        return self.measure(true, self.predict(raw)).value

    def unseen(self, answers: Sequence[Any]) -> dict[str, int]:
        """Labels among these answers that were never learned, and how often each occurs."""
        return {label: n for label, n in self._counted(answers).items() if label not in self._known()}

    def keep(self, texts: Sequence[Any]) -> Iterator[Computed]:
        """Compute the layers of texts that will be answered more than once, and keep them with those of the data."""
        self._way_in()
        if self.feed_.store is not None:
            for done, total in self.feed_.store.keep([s for text in self._texts(list(texts)) for s in text]):
                yield Computed(done, total)

    @property
    def mixes_(self) -> list[LearnedMix]:
        """What was learned about the layers."""
        return self._way_in().learned()

    # Learning

    def events(
        self,
        texts: Sequence[Any],
        answers: Sequence[Any],
        *,
        dev: tuple[Any, Any] | None = None,
        checkpoint: Path | None = None,
    ) -> Iterator[Event]:
        """Learn, telling each step. At the end, and where it is broken off, the task is at its best epoch.

        checkpoint: a file to go on from where it exists, rewritten after each epoch.
        """
        settings = settings_of(self.settings)
        if self.elmo is not None and not isinstance(self.elmo, Embedder):
            raise ConfigError(
                f"elmo is {self.elmo!r}, a {type(self.elmo).__name__}; needed is a loaded model: "
                f"bilmo.load({str(self.elmo)!r})"
            )
        raw, answers = self._examples(texts, answers, learned=False)
        notes = self._learn_forms(raw, answers, settings)
        examples = list(zip(self._texts(raw), answers, strict=True))
        if dev is not None:
            dev_raw, dev_answers = self._examples(*dev, learned=True)
            train, held = examples, list(zip(self._texts(dev_raw), dev_answers, strict=True))
        else:
            train, held = split_off(examples, settings.dev_share)
        notes += self._notes([answer for _, answer in train], [answer for _, answer in held])
        empty = sum(not length(text) for text, _ in [*train, *held])
        if empty:
            notes.append(f"{empty:,} texts have no words; they are answered by what is left, the labels' frequency")
        self._build(settings, [sentence for text, _ in train for sentence in text])
        yield Prepared(
            examples=len(train),
            dev=len(held),
            dev_split_off=dev is None,
            labels=self._counted([answer for _, answer in train]),
            parameters=sum(p.numel() for p in self.network_.parameters() if p.requires_grad),
            width=self._way_in().width,
            notes=notes,
        )
        if self.feed_.store is not None:
            given = [examples] if dev is None else [train, held]  # before the split, so that any split finds them
            for part in given:
                for done, total in self.feed_.store.keep([sentence for text, _ in part for sentence in text]):
                    yield Computed(done, total)

        def loss_of(numbers: list[int]) -> Tensor:
            some = [train[k] for k in numbers]
            batch = self.feed_.batch([text for text, _ in some])
            return self._loss(batch, [answer for _, answer in some]) + self._way_in().l2()

        def judge() -> float:
            return self.measure(
                [answer for _, answer in held], self._run([text for text, _ in held], self._answer)
            ).value

        lengths = [length(text) for text, _ in train]
        fitting = Fitting(self.network_, settings, lengths, loss_of, judge, checkpoint)
        try:
            yield from fitting.events()
        finally:
            fitting.use_best()
            self.best_ = fitting.progress.best or 0.0

    def _examples(self, texts: Any, answers: Any, *, learned: bool) -> tuple[list[Any], list[Any]]:
        """Texts, and an answer for each."""
        if isinstance(texts, str) or isinstance(answers, str):
            raise TextError("texts and their answers must be lists; found one string")
        raw, given = list(texts), list(answers)
        if len(raw) != len(given):
            raise TextError(f"{len(raw)} texts, but {len(given)} answers; each text needs one")
        if not raw:
            raise TextError("there are no examples; a text and its answer are the least")
        return raw, self._checked(raw, given, learned=learned)

    def _notes(self, train: Sequence[Any], held: Sequence[Any]) -> list[str]:
        counts = self._counted(train)
        if not counts:
            return []
        most, least = max(counts, key=lambda label: counts[label]), min(counts, key=lambda label: counts[label])
        notes = []
        if counts[most] >= UNEQUAL * counts[least]:
            notes.append(
                f"labels are unequal: {most} occurs {counts[most]:,} times, {least} {counts[least]:,} times. "
                "Look at the table by label, not at one number."
            )
        unseen = sorted(self._counted(held).keys() - counts.keys())
        if unseen:
            notes.append(f"the dev set has labels that were never learned: {', '.join(unseen[:10])}")
        return notes

    def _build(self, settings: Settings, sentences: Sequence[Any]) -> None:
        """A fresh network for the data."""
        words = words_of(self.vectors, sentences, settings.word_width) if self.vectors is not None else None
        elmo = None if settings.at == "none" else self.elmo
        settings = settings if elmo is not None else replace(settings, at="none")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self.assemble(settings, words, elmo)

    def assemble(self, settings: Settings, words: TaskWords | None, elmo: Embedder | None) -> None:
        """Feed and network for these settings, with random weights."""
        if elmo is not None and elmo.start == "carry":
            raise ConfigError("a task starts every sentence afresh; load the model with start='settled' or 'zero'")
        tuned = Tuned(elmo.bundle) if elmo is not None and settings.tune else None
        store = LayerStore(elmo, Path(self.cache) if self.cache else None) if elmo is not None and not tuned else None
        config: BiLMConfig | None = elmo.config if elmo is not None else None
        way_in = WayIn(settings, bilm=config, table=words.table if words else None, tuned=tuned)
        if words is not None and words.values is not None and way_in.table is not None:
            with torch.no_grad():
                way_in.table.weight.copy_(torch.from_numpy(words.values))
                way_in.table.marks.copy_(torch.from_numpy(words.values[:3]))
        indexer = None
        if words is not None or settings.chars:
            indexer = Indexer(
                chars=ByteChars(CHAR_MOST) if settings.chars else None,
                vocab=words.vocab if words else None,
                lower=words.lower if words else False,
                widest_filter=CHAR_WINDOW,
            )
        self.used_, self.words_ = settings, words
        self.feed_ = Feed(indexer, store, tuned)
        self.network_ = nn.ModuleDict({"way_in": way_in, "head": self._head(way_in, settings)}).eval()

    def _way_in(self) -> WayIn:
        if not hasattr(self, "network_"):
            raise BilmoError(f"this {type(self).__name__} has learned nothing yet; call fit first, or load a saved one")
        way_in = self.network_["way_in"]
        assert isinstance(way_in, WayIn)
        return way_in

    # Answering

    def _each(self, raw: Sequence[Any], answer: Any) -> list[Any]:
        self._way_in()
        if isinstance(raw, str):
            raise TextError("texts must be a list; found one string. Put it in a list: [text]")
        return self._run(self._texts(list(raw)), answer)

    @torch.no_grad()
    def _run(self, texts: Sequence[Text], answer: Any) -> list[Any]:
        """Answers in order; how texts are grouped never changes one."""
        self.network_.eval()
        found: list[Any] = [None] * len(texts)
        for numbers in by_length([length(text) for text in texts], AT_ONCE):
            answers = answer(self.feed_.batch([texts[k] for k in numbers]))
            for k, value in zip(numbers, answers, strict=True):
                found[k] = value
        return found


def split_off(examples: list[tuple[Text, Any]], share: float) -> tuple[list[Any], list[Any]]:
    """Examples to learn from, and a share to judge by, chosen by a hash of their words.

    So the same text is never on both sides, and every seed is judged by the same examples.
    """
    hashes = [hashlib.sha256(repr([list(s) for s in text]).encode("utf-8", "replace")).digest() for text, _ in examples]
    border = sorted(hashes)[max(1, round(len(examples) * share)) - 1]
    held = [example for example, key in zip(examples, hashes, strict=True) if key <= border]
    train = [example for example, key in zip(examples, hashes, strict=True) if key > border]
    if not train:
        raise TextError(
            f"{len(examples)} examples, too few different ones to split some off to judge by; give a dev set of its own"
        )
    return train, held

"""Fit, predict and score any task, as scikit-learn expects it of an estimator.

Knows: the specification, the input, the training loop. Blind to: single tasks, files of examples, the command line.
"""

from __future__ import annotations

import copy
import hashlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import torch

from bilmo.embed.embedder import Embedder
from bilmo.errors import BilmoError, ConfigError, TextError
from bilmo.ids.batch import Indexer, by_length
from bilmo.ids.chars import ByteChars
from bilmo.store.card import fact_in
from bilmo.store.vectors_file import Vectors
from bilmo.tasks.core.events import Epoch, Event, LayersComputed, Started
from bilmo.tasks.core.loop import TrainingLoop
from bilmo.tasks.core.measure import Score
from bilmo.tasks.core.settings import Settings, check_settings
from bilmo.tasks.core.spec import Answer, AnyPrepared, AnyTask, Dataset, Example
from bilmo.tasks.network.batch import Batcher, Item, tokens_of
from bilmo.tasks.network.head import TaskNetwork
from bilmo.tasks.network.input import CHAR_MOST, CHAR_WINDOW, LearnedMix, TaskInput
from bilmo.tasks.network.layer_store import LayerStore
from bilmo.tasks.network.tuned import Tuned
from bilmo.tasks.network.words import TaskWords, words_of

AT_ONCE = 4096
"""About how many tokens are predicted at a time."""
UNBALANCED = 10
"""Labels are reported as unbalanced where one occurs this many times as often as another."""
MODEL_SPLITS = ("en", "west", "zh")
"""Rules of splitting that a model card can name; "spaces" says nothing about raw text."""
Result = TypeVar("Result")


class Estimator(Generic[Example, Answer]):
    """Fit, predict, score. The constructor only stores its arguments; learned attributes end in `_`."""

    task: ClassVar[AnyTask]
    """The specification; each subclass names its own."""
    best_: float
    """The task's measure on the dev set after the best epoch."""
    settings_: Settings
    """The checked settings, as they were used."""
    prepared_: AnyPrepared
    """What the training data says: labels and the like."""
    words_: TaskWords | None
    """The task's own word vectors."""
    network_: TaskNetwork[Any, Answer]
    """Input and head."""

    def __init__(
        self,
        elmo: Embedder | None = None,
        *,
        vectors: Vectors | str | PathLike[str] | None = None,
        cache: str | PathLike[str] | None = None,
        **settings: Any,
    ) -> None:
        """Store the parts of the task.

        elmo: a loaded model; None for a task without ELMo.
        vectors: a GloVe or word2vec file, loaded vectors, "scratch" to train them with the task, or None.
        cache: the folder that stores the layers of data sets; None for the user's cache folder.
        settings: the fields of the task's settings, such as `bilmo.tasks.tag.settings.TagSettings`, by name.
        """
        self.elmo, self.vectors, self.cache = elmo, vectors, cache
        self.settings = settings

    @classmethod
    def restore(cls, settings: Settings, prepared: AnyPrepared, words: TaskWords | None, elmo: Embedder | None) -> Self:
        """An estimator as it was when it was saved, with random weights in its network."""
        task = cls(elmo, vectors=None if words is None else words.source, **asdict(settings))
        task._build(settings, prepared, words, elmo)
        return task

    # scikit-learn

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All arguments of the constructor, defaults included."""
        given = {"elmo": self.elmo, "vectors": self.vectors, "cache": self.cache}
        return given | asdict(self.task.settings()) | self.settings

    def set_params(self, **params: Any) -> Self:
        """Change some arguments."""
        accepted = self.get_params()
        unknown = sorted(params.keys() - accepted.keys())
        if unknown:
            raise ConfigError(f"there is no setting {', '.join(unknown)}; accepted: {', '.join(accepted)}")
        for name in ("elmo", "vectors", "cache"):
            if name in params:
                setattr(self, name, params.pop(name))
        self.settings = self.settings | params
        return self

    def __sklearn_clone__(self) -> Self:
        """An unfitted estimator with the same arguments; models are shared, not copied."""
        return type(self)(self.elmo, vectors=self.vectors, cache=self.cache, **copy.deepcopy(self.settings))

    def __sklearn_tags__(self) -> Any:
        """The description that scikit-learn asks for; scikit-learn is installed when this is called."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type=self.task.sklearn_type,
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags() if self.task.sklearn_type == "classifier" else None,
            input_tags=InputTags(two_d_array=False, string=True),
        )

    def fit(
        self,
        texts: Sequence[Example],
        answers: Sequence[Answer],
        *,
        dev: tuple[Sequence[Example], Sequence[Answer]] | None = None,
    ) -> Self:
        """Train on examples. Ctrl-C keeps the best epoch so far.

        dev: texts and answers of the dev set; without it, a share of the examples is split off.
        """
        evaluated = False
        try:
            for event in self.events(Dataset(texts, answers), dev=None if dev is None else Dataset(*dev)):
                evaluated = evaluated or isinstance(event, Epoch)
        except KeyboardInterrupt:
            if not evaluated:
                raise
            warnings.warn("interrupted; the best epoch so far is kept", stacklevel=2)
        return self

    def predict(self, texts: Sequence[Example]) -> list[Answer]:
        """One answer per text, in order."""
        return self.run(texts, self.fitted_network().head.predict)

    def confidence(self, texts: Sequence[Example]) -> list[list[float]]:
        """For each text the probability of each label; for a tagger that of each predicted tag."""
        return self.run(texts, self.fitted_network().head.confidence)

    def score(self, texts: Sequence[Example], answers: Sequence[Answer]) -> float:
        """The task's measure on examples."""
        self.fitted_network()
        data = _listed(Dataset(texts, answers))
        true = self.prepared_.check(*data[:2])
        return self.measure(true, self.predict(data.examples)).value

    def measure(self, true: Sequence[Answer], predicted: Sequence[Answer]) -> Score:
        """The task's measure, with its details."""
        return self.prepared_.measure(true, predicted)

    @property
    def mixes_(self) -> list[LearnedMix]:
        """The learned weights of the layers."""
        return self.fitted_network().input.learned_mixes()

    # Training

    def events(
        self,
        train: Dataset[Example, Answer],
        *,
        dev: Dataset[Example, Answer] | None = None,
        checkpoint: Path | None = None,
    ) -> Iterator[Event]:
        """Train, with one event per step. At the end, or where it is interrupted, the best epoch is in use.

        checkpoint: a file that is rewritten after each epoch; where it exists, training resumes from it.
        """
        settings: Settings = check_settings(self.settings, self.task.settings)
        if self.elmo is not None and not isinstance(self.elmo, Embedder):
            raise ConfigError(
                f"elmo is {self.elmo!r}, a {type(self.elmo).__name__}; it must be a loaded model: "
                f"bilmo.load({str(self.elmo)!r})"
            )
        data = _listed(train)
        prepared, notes = self.task.prepare(data, settings, model_split(self.elmo))
        answers = prepared.check(data.examples, data.answers)
        labelled = list(zip(prepared.items(data.examples, answers), answers, strict=True))
        if dev is None:
            training, held_out = split_off(labelled, settings.dev_share)
        else:
            dev = _listed(dev)
            dev_answers = prepared.check(dev.examples, dev.answers)
            training, held_out = labelled, list(zip(prepared.items(dev.examples), dev_answers, strict=True))
        items, train_answers = [item for item, _ in training], [answer for _, answer in training]
        dev_items, true = [item for item, _ in held_out], [answer for _, answer in held_out]
        counts = prepared.count(train_answers)
        notes = [*notes, *_label_notes(counts, prepared.count(true))]
        empty = sum(not tokens_of(item) for item in (*items, *dev_items))
        if empty:
            notes.append(f"{empty:,} texts have no tokens; their predictions can only follow the labels' frequency")
        self._build_fresh(settings, prepared, items)
        yield Started(
            examples=len(items),
            dev=len(dev_items),
            dev_split_off=dev is None,
            labels=counts,
            parameters=sum(p.numel() for p in self.network_.parameters() if p.requires_grad),
            width=self.network_.input.width,
            notes=notes,
        )
        # Before the split, so that every split finds the layers.
        for part in [[item for item, _ in labelled]] if dev is None else [items, dev_items]:
            yield from self._store_layers(part)

        def evaluate() -> float:
            return self.measure(true, self._run_items(dev_items, self.network_.head.predict)).value

        loop = TrainingLoop(self.network_, settings, items, evaluate)
        if checkpoint is not None and checkpoint.exists():
            loop.resume(checkpoint)
        try:
            for event in loop.events():
                if checkpoint is not None and isinstance(event, Epoch):
                    loop.save(checkpoint)
                yield event
        finally:
            loop.restore_best()
            self.best_ = loop.progress.best or 0.0

    def store_layers(self, texts: Sequence[Example]) -> Iterator[LayersComputed]:
        """Compute and store the layers of texts that will be predicted more than once."""
        self.fitted_network()
        return self._store_layers(self.prepared_.items(list(texts)))

    def _store_layers(self, items: Sequence[Item]) -> Iterator[LayersComputed]:
        store = self.network_.input.batcher.store
        if store is not None:
            for done, total in store.fill([sentence for item in items for text in item.texts for sentence in text]):
                yield LayersComputed(done, total)

    def _build_fresh(self, settings: Settings, prepared: AnyPrepared, items: Sequence[Item]) -> None:
        """A network with random weights for the training data."""
        words = None
        if self.vectors is not None:
            sentences = (sentence for item in items for text in item.texts for sentence in text)
            words = words_of(self.vectors, sentences, settings.word_width)
        elmo = None if settings.elmo_at == "none" else self.elmo
        settings = settings if elmo is not None else replace(settings, elmo_at="none")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self._build(settings, prepared, words, elmo)

    def _build(self, settings: Settings, prepared: AnyPrepared, words: TaskWords | None, elmo: Embedder | None) -> None:
        if elmo is not None and elmo.start == "carry":
            raise ConfigError("a task starts every sentence afresh; load the model with start='settled' or 'zero'")
        tuned = Tuned(elmo.bundle, elmo.start_state) if elmo is not None and settings.tune else None
        store = LayerStore(elmo, Path(self.cache) if self.cache else None) if elmo is not None and not tuned else None
        indexer = None
        if words is not None or settings.chars:
            indexer = Indexer(
                chars=ByteChars(CHAR_MOST) if settings.chars else None,
                vocab=words.vocab if words else None,
                lower=words.lower if words else False,
                widest_filter=CHAR_WINDOW,
            )
        input = TaskInput(
            settings,
            Batcher(indexer, store, tuned),
            bilm=elmo.config if elmo is not None else None,
            table=words.table if words else None,
        )
        if words is not None and words.values is not None and input.table is not None:
            with torch.no_grad():
                input.table.weight.copy_(torch.from_numpy(words.values))
                input.table.marks.copy_(torch.from_numpy(words.values[:3]))
        self.settings_, self.prepared_, self.words_ = settings, prepared, words
        self.network_ = TaskNetwork(input, prepared.head(input, settings)).eval()

    # Prediction

    def fitted_network(self) -> TaskNetwork[Any, Answer]:
        """The network; an error where the estimator is not fitted."""
        if not hasattr(self, "network_"):
            raise BilmoError(f"this {type(self).__name__} is not fitted; call fit first, or load a saved one")
        return self.network_

    def run(
        self, texts: Sequence[Example], function: Callable[[TaskInput, Sequence[Any]], list[Result]]
    ) -> list[Result]:
        """The results of a function of the head, one per text, in order."""
        if isinstance(texts, str):
            raise TextError("texts must be a list; found one string. Put it in a list: [text]")
        return self._run_items(self.prepared_.items(list(texts)), function)

    @torch.no_grad()
    def _run_items(
        self, items: Sequence[Item], function: Callable[[TaskInput, Sequence[Any]], list[Result]]
    ) -> list[Result]:
        """How items are grouped into batches never changes a result."""
        self.network_.eval()
        found: dict[int, Result] = {}
        for numbers in by_length([tokens_of(item) for item in items], AT_ONCE):
            results = function(self.network_.input, [items[k] for k in numbers])
            found.update(zip(numbers, results, strict=True))
        return [found[k] for k in range(len(items))]


def model_split(elmo: Embedder | None) -> str:
    """How the training text of a biLM was split, by its card; empty where the card does not name any rules."""
    found = fact_in(elmo.bundle.card, "split") if elmo is not None else ""
    return found if found in MODEL_SPLITS else ""


def split_off(labelled: list[tuple[Item, Answer]], share: float) -> tuple[list[Any], list[Any]]:
    """Examples to train on, and a share of them as the dev set, chosen by a hash of their words.

    The same text is never in both parts, and every seed has the same dev set.
    """
    hashes = [
        hashlib.sha256(repr([list(s) for text in item.texts for s in text]).encode("utf-8", "replace")).digest()
        for item, _ in labelled
    ]
    border = sorted(hashes)[max(1, round(len(labelled) * share)) - 1]
    held_out = [one for one, key in zip(labelled, hashes, strict=True) if key <= border]
    training = [one for one, key in zip(labelled, hashes, strict=True) if key > border]
    if not training:
        raise TextError(f"{len(labelled)} examples are too few different ones to split off a dev set; give a dev set")
    return training, held_out


def _listed(data: Dataset[Example, Answer]) -> Dataset[Example, Answer]:
    """Lists of examples and answers, of the same length and not empty."""
    if isinstance(data.examples, str) or isinstance(data.answers, str):
        raise TextError("texts and their answers must be lists; found one string")
    examples, answers = list(data.examples), list(data.answers)
    if len(examples) != len(answers):
        raise TextError(f"{len(examples)} texts, but {len(answers)} answers; each text needs one")
    if not examples:
        raise TextError("there are no examples; give at least one text and its answer")
    return Dataset(examples, answers, data.form)


def _label_notes(train: dict[str, int], dev: dict[str, int]) -> list[str]:
    """What a user should know about the labels of the training and the dev set."""
    if not train:
        return []
    notes = []
    most, least = max(train, key=lambda label: train[label]), min(train, key=lambda label: train[label])
    if train[most] >= UNBALANCED * train[least]:
        notes.append(
            f"labels are unbalanced: {most} occurs {train[most]:,} times, {least} {train[least]:,} times. "
            "Read the table per label, not only the one number."
        )
    unseen = sorted(dev.keys() - train.keys())
    if unseen:
        notes.append(f"the dev set has labels that do not occur in the training examples: {', '.join(unseen[:10])}")
    return notes

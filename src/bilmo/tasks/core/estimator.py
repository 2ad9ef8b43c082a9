"""Fit, predict and score any task, as scikit-learn expects it of an estimator.

Knows: the specification, the input, the training loop. Blind to: single tasks, files of examples, the command line.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import torch
from torch import nn

from bilmo.embed.embedder import Embedder
from bilmo.embed.texts import SPLIT_RULES
from bilmo.errors import BilmoError, ConfigError, TextError
from bilmo.ids.batch import Indexer, by_length
from bilmo.ids.chars import ByteChars
from bilmo.store.vectors_file import Vectors
from bilmo.tasks.core.events import Epoch, Event, LayersComputed, Started, WaitingForLayers
from bilmo.tasks.core.examples import TrainingExamples, listed_data, prepare_examples
from bilmo.tasks.core.loop import TrainingLoop
from bilmo.tasks.core.settings import Settings, check_settings
from bilmo.tasks.core.spec import Answer, AnyTask, Dataset, Example, ItemT, Prepared, SettingsT
from bilmo.tasks.data.splitting import ModelSplit
from bilmo.tasks.network.batch import Batcher, tokens_of
from bilmo.tasks.network.head import TaskNetwork
from bilmo.tasks.network.input import CHAR_MOST, CHAR_WINDOW, LearnedMix, TaskInput
from bilmo.tasks.network.layer_store import LayerStore, Waiting
from bilmo.tasks.network.probabilities import Probabilities
from bilmo.tasks.network.tuned import Tuned
from bilmo.tasks.network.words import TaskWords, words_of
from bilmo.training.cost import need_memory

BATCH_TOKENS = 4096
"""About how many tokens are predicted at a time."""
Result = TypeVar("Result")


class Estimator(Generic[Example, ItemT, Answer, SettingsT]):
    """Fit, predict, score. The constructor only stores its arguments; learned attributes end in `_`."""

    task: ClassVar[AnyTask]
    """The specification; each subclass names its own."""
    best_: float
    """The task's measure on the dev set after the best epoch."""
    settings_: SettingsT
    """The checked settings, as they were used."""
    prepared_: Prepared[Example, ItemT, Answer, SettingsT]
    """What the training data says: labels and the like."""
    words_: TaskWords | None
    """The task's own word vectors."""
    network_: TaskNetwork[ItemT, Answer]
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

    def __repr__(self) -> str:
        """The arguments that were given."""
        given = {"elmo": self.elmo, "vectors": self.vectors, "cache": self.cache}
        shown = {name: value for name, value in given.items() if value is not None} | self.settings
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @classmethod
    def restore(
        cls,
        settings: SettingsT,
        prepared: Prepared[Example, ItemT, Answer, SettingsT],
        words: TaskWords | None,
        elmo: Embedder | None,
    ) -> Self:
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
        evaluated = waiting = False
        try:
            for event in self.events(Dataset(texts, answers), dev=None if dev is None else Dataset(*dev)):
                evaluated = evaluated or isinstance(event, Epoch)
                if isinstance(event, WaitingForLayers) and not waiting:
                    waiting = True
                    warnings.warn("waiting for another run, which computes the layers of this data", stacklevel=2)
        except KeyboardInterrupt:
            if not evaluated:
                raise
            warnings.warn("interrupted; the best epoch so far is kept", stacklevel=2)
        return self

    def predict(self, texts: Sequence[Example]) -> Any:
        """One prediction per text, in order, in the form that fits the task."""
        return self.answers(texts)

    def answers(self, texts: Sequence[Example]) -> list[Answer]:
        """One prediction per text, in order, as plain values in a list."""
        return self.run(texts, self.fitted_network().head.predict)

    def confidence(self, texts: Sequence[Example]) -> list[Probabilities]:
        """For each text, the probability of each label; for a tagger, the probability of each predicted tag."""
        return self.run(texts, self.fitted_network().head.confidence)

    def score(self, texts: Sequence[Example], answers: Sequence[Answer]) -> float:
        """The task's measure on examples."""
        self.fitted_network()
        data = listed_data(Dataset(texts, answers))
        true = self.prepared_.check(*data[:2])
        return self.prepared_.measure(true, self.answers(data.examples)).value

    @property
    def mixes_(self) -> list[LearnedMix]:
        """The learned weights of the layers."""
        return self.fitted_network().input.learned_mixes()

    # Training

    def events(
        self, train: Dataset[Example, Answer], *, dev: Dataset[Example, Answer] | None = None
    ) -> Iterator[Event]:
        """Train, with one event per step. At the end, or where it is interrupted, the best epoch is in use."""
        return self.training(train, dev=dev).events()

    def training(
        self, train: Dataset[Example, Answer], *, dev: Dataset[Example, Answer] | None = None
    ) -> Training[Example, ItemT, Answer, SettingsT]:
        """Check settings and examples and build the network: everything before the first step."""
        settings: SettingsT = check_settings(self.settings, self.task.settings)
        if self.elmo is not None and not isinstance(self.elmo, Embedder):
            raise ConfigError(
                f"elmo is {self.elmo!r}, a {type(self.elmo).__name__}; it must be a loaded model: "
                f"bilmo.load({str(self.elmo)!r})"
            )
        prepared, examples = prepare_examples(self.task, train, dev, settings, model_split(self.elmo))
        words = None
        if self.vectors is not None:
            sentences = (sentence for item in examples.items for text in item.texts for sentence in text)
            words = words_of(self.vectors, sentences, settings.word_width)
        elmo = None if settings.elmo_at == "none" else self.elmo
        settings = settings if elmo is not None else replace(settings, elmo_at="none")
        self._build(settings, prepared, words, elmo)
        return Training(self, examples)

    def store_layers(self, texts: Sequence[Example]) -> Iterator[LayersComputed | WaitingForLayers]:
        """Compute and store the layers of texts that will be predicted more than once."""
        return store_layers(self.fitted_network(), self.prepared_.items(list(texts)))

    def _build(
        self,
        settings: SettingsT,
        prepared: Prepared[Example, ItemT, Answer, SettingsT],
        words: TaskWords | None,
        elmo: Embedder | None,
    ) -> None:
        """A network with random weights, which depend on the seed only."""
        if elmo is not None and elmo.start == "carry":
            raise ConfigError(
                "a task cannot carry a state from sentence to sentence; load the model with start='settled' or 'zero'"
            )
        batcher = self._batcher(settings, words, elmo)

        def network() -> TaskNetwork[ItemT, Answer]:
            input = _input(settings, words, elmo, batcher)
            return TaskNetwork(input, prepared.head(input, settings)).eval()

        _check_memory(network)
        with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay as they are
            torch.manual_seed(settings.seed)
            self.network_ = network()
        self.settings_, self.prepared_, self.words_ = settings, prepared, words

    def _batcher(self, settings: SettingsT, words: TaskWords | None, elmo: Embedder | None) -> Batcher:
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
        return Batcher(indexer, store, tuned)

    # Prediction

    def fitted_network(self) -> TaskNetwork[ItemT, Answer]:
        """The network; an error where the estimator is not fitted."""
        if not hasattr(self, "network_"):
            raise BilmoError(f"this {type(self).__name__} is not fitted; call fit first, or load a saved one")
        return self.network_

    def run(
        self, texts: Sequence[Example], function: Callable[[TaskInput, Sequence[ItemT]], Sequence[Result]]
    ) -> list[Result]:
        """The results of a function of the head, one per text, in order."""
        if isinstance(texts, str):
            raise TextError("texts must be a list; found one string. Put it in a list: [text]")
        return run_items(self.fitted_network(), self.prepared_.items(list(texts)), function)


def _input(settings: Settings, words: TaskWords | None, elmo: Embedder | None, batcher: Batcher) -> TaskInput:
    """The input with random weights, and with the given word vectors."""
    bilm = elmo.config if elmo is not None else None
    input = TaskInput(settings, batcher, bilm=bilm, table=words.table if words else None)
    if words is not None and words.values is not None and input.table is not None:
        with torch.no_grad():
            input.table.weight.copy_(torch.from_numpy(words.values))
            input.table.marks.copy_(torch.from_numpy(words.values[:3]))
    return input


def _check_memory(network: Callable[[], nn.Module]) -> None:
    """Refuse a network that the machine cannot hold; its parameters are counted without making it."""
    try:
        with torch.device("meta"):
            parameters = sum(parameter.numel() for parameter in network().parameters())
    except RuntimeError as error:  # each size is valid, but their product is too large
        raise ConfigError(f"a network of this size does not fit into memory ({error}). Lower hidden.") from None
    need_memory(parameters, "hidden, chars, word_width, or fewer labels")


class Training(Generic[Example, ItemT, Answer, SettingsT]):
    """The training of an estimator. The caller saves: `loop` gives and takes checkpoints."""

    def __init__(
        self, task: Estimator[Example, ItemT, Answer, SettingsT], examples: TrainingExamples[ItemT, Answer]
    ) -> None:
        self._task, self.examples = task, examples
        self.loop = TrainingLoop(task.network_, task.settings_, examples.items, self._evaluate)

    def events(self) -> Iterator[Event]:
        """Train, with one event per step. At the end, or where it is interrupted, the best epoch is in use."""
        examples, network = self.examples, self._task.network_
        yield Started(
            examples=len(examples.items),
            dev=len(examples.dev_items),
            dev_split_off=examples.dev_split_off,
            labels=examples.counts,
            parameters=sum(p.numel() for p in network.parameters() if p.requires_grad),
            width=network.input.width,
            notes=examples.notes,
        )
        for items in examples.given:
            yield from store_layers(network, items)
        try:
            yield from self.loop.events()
        finally:
            self.loop.restore_best()
            self._task.best_ = self.loop.progress.best or 0.0

    def _evaluate(self) -> float:
        """The task's measure on the dev set."""
        network = self._task.network_
        predicted = run_items(network, self.examples.dev_items, network.head.predict)
        return self._task.prepared_.measure(self.examples.dev_answers, predicted).value


def store_layers(
    network: TaskNetwork[ItemT, Answer], items: Sequence[ItemT]
) -> Iterator[LayersComputed | WaitingForLayers]:
    """Compute and store the layers of a data set, where they come from a frozen biLM."""
    store = network.input.batcher.store
    if store is not None:
        for state in store.fill([sentence for item in items for text in item.texts for sentence in text]):
            yield WaitingForLayers() if isinstance(state, Waiting) else LayersComputed(state.done, state.total)


@torch.no_grad()
def run_items(
    network: TaskNetwork[ItemT, Answer],
    items: Sequence[ItemT],
    function: Callable[[TaskInput, Sequence[ItemT]], Sequence[Result]],
) -> list[Result]:
    """Apply a function of the head to all items, in batches of similar length."""
    network.eval()
    found: dict[int, Result] = {}
    for numbers in by_length([tokens_of(item) for item in items], BATCH_TOKENS):
        results = function(network.input, [items[k] for k in numbers])
        found.update(zip(numbers, results, strict=True))
    return [found[k] for k in range(len(items))]


def model_split(elmo: Embedder | None) -> ModelSplit:
    """How the training text of a biLM was split, if the model records it."""
    if elmo is None:
        return ModelSplit()
    lang, dictionary = elmo.bundle.lang, elmo.bundle.dictionary
    return ModelSplit(lang if lang in SPLIT_RULES else "", dictionary.words if dictionary else ())

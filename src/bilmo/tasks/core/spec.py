"""The specification of a task: all that estimator, loop, run, folder, comparison and command line know of tasks.

A task is a folder with one subclass of `Task`, and one line in `tasks/all.py`:

    Task       before the data is known: name, settings, data forms; reads examples, and prepares itself for them
    Prepared   after that: knows labels or whatever else the examples say; makes items and the head, measures, writes
    Head       the network on top of the input: loss and predictions (network/head.py)

This file and the specifications of the tasks do not import torch, so that help screens are fast.

Knows: settings, scores. Blind to: single tasks, files, running networks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

from bilmo.errors import ConfigError, TextError
from bilmo.net.config import MAX_SIZE, STRICT
from bilmo.tasks.core.measure import Score
from bilmo.tasks.core.settings import Settings
from bilmo.tasks.data.rows import SUFFIXES
from bilmo.tasks.data.splitting import ModelSplit
from bilmo.tasks.network.probabilities import Probabilities

if TYPE_CHECKING:
    from bilmo.tasks.core.estimator import Estimator
    from bilmo.tasks.network.batch import Item, Text
    from bilmo.tasks.network.head import Head
    from bilmo.tasks.network.input import TaskInput

Example = TypeVar("Example")
"""What a user gives: a text, a sentence, a pair of texts, ..."""
Answer = TypeVar("Answer")
"""What is known or predicted of it: a label, one tag per token, ..."""
ItemT = TypeVar("ItemT", bound="Item")
"""An example as the head takes it."""
SettingsT = TypeVar("SettingsT", bound=Settings)


class Dataset(NamedTuple, Generic[Example, Answer]):
    """Examples and their answers."""

    examples: Sequence[Example]
    answers: Sequence[Answer]
    form: str = ""
    """The form of the file they were read from; empty for data from memory."""
    notes: Sequence[str] = ()
    """What a user should know about how the file was read."""


@dataclass(frozen=True)
class PredictionInput(Generic[Example]):
    """Examples to predict from."""

    form: str
    """How the file was read, in words."""
    examples: Iterator[Example]


@dataclass(frozen=True, kw_only=True)
class Prepared(ABC, Generic[Example, ItemT, Answer, SettingsT]):
    """A task that knows its data. Its fields are plain values, which are saved with the task."""

    __pydantic_config__ = STRICT

    dictionary: tuple[str, ...] = ()
    """Words that the Chinese rules keep whole, where the task splits text."""

    @abstractmethod
    def check(self, examples: Sequence[Example], answers: Sequence[Answer]) -> list[Answer]:
        """Answers as plain values; an error where they do not fit the examples or what was trained."""

    @abstractmethod
    def items(self, examples: Sequence[Example], answers: Sequence[Answer] | None = None) -> list[ItemT]:
        """Examples as the head takes them, with their answers for training, without for prediction."""

    @abstractmethod
    def head(self, input: TaskInput, settings: SettingsT) -> Head[ItemT, Answer]:
        """A head with random weights."""

    @abstractmethod
    def count(self, answers: Iterable[Answer]) -> dict[str, int]:
        """How often each label occurs."""

    @abstractmethod
    def known(self) -> set[str]:
        """The labels that can be predicted, by the names of `count`."""

    @abstractmethod
    def measure(self, true: Sequence[Answer], predicted: Sequence[Answer]) -> Score:
        """The task's measure."""

    @abstractmethod
    def read(self, path: Path, form: str, settings: SettingsT) -> PredictionInput[Example]:
        """Read examples to predict from; answers in the file are ignored. `form` is a name, or "auto"."""

    @abstractmethod
    def header(self, form: str, *, probabilities: bool) -> str | None:
        """The first line of a file of predictions; None where the form has none. All tasks share that of HTML."""

    @abstractmethod
    def lines(
        self,
        examples: Sequence[Example],
        answers: Sequence[Answer],
        probabilities: Sequence[Probabilities] | None,
        form: str,
        number: int,
    ) -> Iterator[str]:
        """Lines of a file of predictions; in HTML, articles. `number` is that of the first example, counted from 1."""

    def split_by(self, item: ItemT) -> Sequence[Text]:
        """The texts that decide whether an example is in the dev set, where one is split off: by default all."""
        return item.texts

    def inputs(self) -> dict[str, str]:
        """What else a resumed run must have in common with the first one, by name, as hashes; most tasks have none."""
        return {}

    def baselines(self, examples: Sequence[Example], true: Sequence[Answer]) -> list[tuple[str, float]]:
        """Measures of a simple rule on the same examples, to compare with; most tasks have none."""
        return []

    def unseen(self, answers: Iterable[Answer]) -> dict[str, int]:
        """Labels that do not occur in the training data, and how often each occurs in these answers."""
        known = self.known()
        return {label: count for label, count in self.count(answers).items() if label not in known}


def check_labels(labels: Sequence[Any], most: int = MAX_SIZE) -> None:
    """Refuse labels that no training examples have: less than two, too many, or one of them twice."""
    if not 2 <= len(labels) <= most:
        raise ConfigError(f"there are {len(labels):,} labels; there must be from 2 to {most:,}")
    if len(set(labels)) < len(labels):
        raise ConfigError("a label occurs twice; labels must be distinct")


class Task(ABC, Generic[Example, ItemT, Answer, SettingsT]):
    """The specification of a task."""

    name: ClassVar[str]
    """As typed: `bilmo fit NAME`."""
    summary: ClassVar[str]
    """What it predicts, in a clause."""
    settings: type[SettingsT]
    prepared: type[Prepared[Example, ItemT, Answer, SettingsT]]
    forms: ClassVar[Mapping[str, str]]
    """The forms of files with examples and answers: names for `--form`, and what each is."""
    outputs: ClassVar[tuple[str, ...]]
    """The forms in which predictions are written; the first is the default."""
    asks: ClassVar[bool] = False
    """Whether an example is a question about a text, as `bilmo predict --context FILE --question TEXT` gives it."""
    parallel: ClassVar[bool] = False
    """Whether examples and answers may be in two files, line by line."""
    sklearn_type: ClassVar[str | None] = None
    """The estimator type that scikit-learn sees; None where it has no name for it."""

    @abstractmethod
    def read(self, path: Path, form: str, settings: SettingsT) -> Dataset[Example, Answer]:
        """Read examples with answers. `form` is a name, or "auto" to detect it."""

    def read_files(self, paths: Sequence[Path], form: str, settings: SettingsT) -> Dataset[Example, Answer]:
        """The same from one file, or from two where the task reads parallel files."""
        if len(paths) != 1:
            raise TextError(f"{self.name} reads one file; found {len(paths)}: {', '.join(map(str, paths))}")
        return self.read(paths[0], form, settings)

    @abstractmethod
    def prepare(
        self, data: Dataset[Example, Answer], settings: SettingsT, model_split: ModelSplit
    ) -> tuple[Prepared[Example, ItemT, Answer, SettingsT], list[Answer], list[str]]:
        """Learn labels and the like from training examples.

        Returns also the checked answers as plain values, and what a user should know about the data.

        model_split: how the training text of the biLM was split.
        """

    @abstractmethod
    def estimator(self) -> type[Estimator[Example, ItemT, Answer, SettingsT]]:
        """The class that users fit; imported when it is needed, for it imports torch."""

    def choose_output(self, path: Path | None, wanted: str) -> str:
        """The form to write: the one asked for, the one of the file's name, or the default."""
        by_name = SUFFIXES.get(path.suffix.lower()) if path is not None else None
        form = (by_name or self.outputs[0]) if wanted == "auto" else wanted
        if form not in self.outputs:
            found = f"{path}: the file name selects {form}" if wanted == "auto" else f"--to is {form!r}"
            raise ConfigError(f"{found}; predictions of {self.name} can be written as {', '.join(self.outputs)}")
        return form


AnyTask = Task[Any, Any, Any, Any]
"""Any task, for code that handles all of them: a list of tasks, a command, a saved folder."""
AnyEstimator: TypeAlias = "Estimator[Any, Any, Any, Any]"
"""The estimator of any task, for the same code."""

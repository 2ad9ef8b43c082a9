"""The specification of the task `count`. An example is a pair of texts, so that the ground is known to carry pairs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bilmo.errors import ConfigError, TextError
from bilmo.tasks.core.measure import Score, by_label
from bilmo.tasks.core.settings import Settings
from bilmo.tasks.core.spec import Dataset, PredictionInput, Prepared, Task
from bilmo.tasks.data.rows import row
from bilmo.tasks.data.splitting import ModelSplit
from bilmo.tasks.network.probabilities import Probabilities
from bilmo.text.files import lines

if TYPE_CHECKING:
    from bilmo.tasks.network.batch import Text
    from bilmo.tasks.network.input import TaskInput
    from tasks.count.estimator import CountHead, TokenCounter

Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class CountSettings(Settings):
    """The settings of all tasks, and one more."""

    depth: int = 1
    """Number of hidden layers between the sum and the scores."""
    batch: int = 8
    """Pairs per step: a task may have its own default of a shared setting."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.depth < 0:
            raise ConfigError(f"depth is {self.depth}; it must be 0 or more")


@dataclass(frozen=True)
class PairItem:
    """Two texts, and the answer where it is known."""

    first: Text
    second: Text
    answer: int | None = None

    @property
    def texts(self) -> Sequence[Text]:
        return self.first, self.second


@dataclass(frozen=True, kw_only=True)
class PreparedCount(Prepared[Pair, PairItem, int, CountSettings]):
    """What the training examples say: which answers occur."""

    answers: tuple[int, ...]

    def check(self, examples: Sequence[Pair], answers: Sequence[int]) -> list[int]:
        for answer in answers:
            if answer not in (0, 1, 2):
                raise TextError(f"an answer is {answer!r}; accepted: 0, 1, 2")
        return list(answers)

    def items(self, examples: Sequence[Pair], answers: Sequence[int] | None = None) -> list[PairItem]:
        known = [None] * len(examples) if answers is None else answers
        return [PairItem([a.split()], [b.split()], n) for (a, b), n in zip(examples, known, strict=True)]

    def head(self, input: TaskInput, settings: CountSettings) -> CountHead:
        from tasks.count.estimator import CountHead

        return CountHead(input, settings)

    def count(self, answers: Iterable[int]) -> dict[str, int]:
        return dict(sorted(Counter(map(str, answers)).items()))

    def known(self) -> set[str]:
        return set(map(str, self.answers))

    def measure(self, true: Sequence[int], predicted: Sequence[int]) -> Score:
        return by_label(list(map(str, true)), list(map(str, predicted)))

    def read(self, path: Path, form: str, settings: CountSettings) -> PredictionInput[Pair]:
        return PredictionInput("pairs, the answer ignored", (pair for pair, _ in pairs(path, form)))

    def header(self, form: str, *, probabilities: bool) -> str | None:
        return None

    def lines(
        self,
        examples: Sequence[Pair],
        answers: Sequence[int],
        probabilities: Sequence[Probabilities] | None,
        form: str,
        number: int,
    ) -> Iterator[str]:
        for k, (pair, answer) in enumerate(zip(examples, answers, strict=True)):
            shares = [] if probabilities is None else [f"{share:.4f}" for share in probabilities[k]]
            yield json.dumps([*pair, answer, *shares]) if form == "jsonl" else row([*pair, answer, *shares], form)


class Count(Task[Pair, PairItem, int, CountSettings]):
    """The specification."""

    name = "count"
    summary = "the number of tokens in two texts, modulo 3"
    settings = CountSettings
    prepared = PreparedCount
    forms: ClassVar = {"pairs": "two texts and their answer, with tabs"}
    outputs = ("table", "jsonl")

    def read(self, path: Path, form: str, settings: CountSettings) -> Dataset[Pair, int]:
        found = list(pairs(path, form))
        return Dataset([pair for pair, _ in found], [int(answer) for _, answer in found], "pairs")

    def prepare(
        self, data: Dataset[Pair, int], settings: CountSettings, model_split: ModelSplit
    ) -> tuple[PreparedCount, list[int], list[str]]:
        prepared = PreparedCount(answers=tuple(sorted(set(data.answers))))
        return prepared, prepared.check(data.examples, data.answers), ["counting is easy"]

    def estimator(self) -> type[TokenCounter]:
        from tasks.count.estimator import TokenCounter

        return TokenCounter


COUNT = Count()


def pairs(path: Path, form: str) -> Iterator[tuple[Pair, str]]:
    if form not in ("auto", "pairs"):
        raise TextError(f"form is {form!r}; accepted: auto, pairs")
    for number, line in enumerate(lines(path), start=1):
        cells = line.split("\t")
        if len(cells) < 2:
            raise TextError(f"{path}, line {number}: {len(cells)} columns; expected two texts and their answer")
        yield (cells[0], cells[1]), cells[-1]

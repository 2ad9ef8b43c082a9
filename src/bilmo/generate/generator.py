"""The estimator of tasks that write.

Knows: Estimator, the head, the search. Blind to: files, the command line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from bilmo.embed.embedder import Embedder
from bilmo.errors import ConfigError, WeightsError
from bilmo.generate.data.items import PairItem
from bilmo.generate.network.head import GenerateHead, Hypothesis
from bilmo.generate.network.search import SearchOptions
from bilmo.generate.network.target_model import TargetModel, load_forward
from bilmo.generate.prepared import PreparedPairs
from bilmo.generate.settings import GenerateSettings
from bilmo.tasks.core.estimator import Estimator, Training, run_items
from bilmo.tasks.core.events import Event, Started
from bilmo.tasks.core.spec import Dataset, Prepared
from bilmo.tasks.data.splitting import RawText
from bilmo.tasks.network.input import TaskInput
from bilmo.tasks.network.words import TaskWords

SettingsT = TypeVar("SettingsT", bound=GenerateSettings)


class Generator(Estimator[RawText, PairItem, str, SettingsT]):
    """Writes a text for each source. Sources and targets are strings, or lists of words."""

    prepared_: PreparedPairs[SettingsT]

    def predict(self, texts: Sequence[RawText]) -> list[str]:
        """The best text for each source."""
        return self.answers(texts)

    def hypotheses(
        self,
        texts: Sequence[RawText],
        *,
        beam: int | None = None,
        best: int = 1,
        length_penalty: float | None = None,
        coverage_penalty: float | None = None,
        shortest: int | None = None,
        longest: int | None = None,
    ) -> list[list[Hypothesis]]:
        """The best results for each source, best first, with probabilities and attention.

        beam: number of partial results that the search keeps; 1 is greedy.
        best: number of results.
        length_penalty: exponent of the length in the score of a result; 0 prefers short ones.
        coverage_penalty: weight of source words without attention in the score.
        shortest: minimum number of tokens.
        longest: maximum number of tokens.

        What is not given is as it was set for the task.
        """
        given: dict[str, Any] = {
            "beam": beam,
            "length_penalty": length_penalty,
            "coverage_penalty": coverage_penalty,
            "shortest": shortest,
            "longest": longest,
        }
        head = self._head()
        settings = replace(self.settings_, **{name: value for name, value in given.items() if value is not None})
        if best < 1:
            raise ConfigError(f"best is {best}; it must be at least 1")
        options = SearchOptions(
            beam=settings.beam,
            best=best,
            shortest=settings.shortest,
            length_penalty=settings.length_penalty,
            coverage_penalty=settings.coverage_penalty,
        )
        most = settings.longest or self.prepared_.longest

        def found(input: TaskInput, items: Sequence[PairItem]) -> list[list[Hypothesis]]:
            return head.search(input, items, options, most)

        return self.run(texts, found)

    def log_probability(self, texts: Sequence[RawText], targets: Sequence[RawText]) -> list[float]:
        """For each source the log-probability that the network gives to a target."""
        head = self._head()
        items = self.prepared_.items(list(texts), self.prepared_.check(texts, targets))
        return [math.fsum(some) for some in run_items(self.network_, items, head.log_probabilities)]

    def training(
        self, train: Dataset[RawText, str], *, dev: Dataset[RawText, str] | None = None
    ) -> Training[RawText, PairItem, str, SettingsT]:
        """Check settings and examples and build the network: everything before the first step."""
        found = super().training(train, dev=dev)
        return _Training(self, found.examples)

    def _build(
        self,
        settings: SettingsT,
        prepared: Prepared[RawText, PairItem, str, SettingsT],
        words: TaskWords | None,
        elmo: Embedder | None,
    ) -> None:
        """A network with random weights, and the target model beside it."""
        found = None
        if settings.target_model is not None:
            path = Path(settings.target_model)
            # A path becomes absolute, so that it is found from any folder; a name that is not a path stays a name.
            settings = replace(settings, target_model=str(path.resolve()) if path.exists() else settings.target_model)
            found = self._load_target_model(str(settings.target_model), cast("PreparedPairs[SettingsT]", prepared))
        super()._build(settings, prepared, words, elmo)
        self._head().target_model = found

    def _load_target_model(self, name: str, prepared: PreparedPairs[SettingsT]) -> TargetModel:
        elmo = load_forward(name)
        if elmo.bundle.identity() != prepared.target_model:
            raise WeightsError(f"the target model {name} is not the one that this task was fitted with; fit it again")
        return TargetModel(elmo, Path(self.cache) if self.cache else None)

    def _head(self) -> GenerateHead:
        return cast("GenerateHead", self.fitted_network().head)


class _Training(Training[RawText, PairItem, str, SettingsT]):
    """Stores the layers of the targets too; evaluates with a beam of 1, which is fast, or by the loss."""

    def events(self) -> Iterator[Event]:
        """Train, with one event per step."""
        target_model = cast("GenerateHead", self._task.network_.head).target_model
        for event in super().events():
            yield event
            if isinstance(event, Started) and target_model is not None:
                yield from target_model.fill([item.target for item in self.examples.given[0]])

    def _evaluate(self) -> float:
        network, prepared = self._task.network_, cast("PreparedPairs[SettingsT]", self._task.prepared_)
        head, answers = cast("GenerateHead", network.head), self.examples.dev_answers
        if self._task.settings_.stop == "measure":
            return prepared.measure(answers, run_items(network, self.examples.dev_items, head.greedy)).value
        pairs = zip(self.examples.dev_items, answers, strict=True)
        items = [replace(item, target=prepared.target_tokens(answer)) for item, answer in pairs]
        values = [value for some in run_items(network, items, head.log_probabilities) for value in some]
        return math.exp(math.fsum(values) / len(values))  # the mean probability of a word: higher is better

"""One head with different inputs: word vectors only, ELMo only, both, other mixes, single layers; over several seeds.

Knows: Estimator. Blind to: single tasks, files, the command line.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from bilmo.embed.embedder import Embedder
from bilmo.errors import ConfigError
from bilmo.store.vectors_file import Vectors
from bilmo.tasks.core.events import Event
from bilmo.tasks.core.settings import check_settings
from bilmo.tasks.core.spec import Answer, Dataset, Example, ItemT, SettingsT, Task
from bilmo.tasks.network.words import SCRATCH, load_vectors

WORDS = "words"
USUAL = (WORDS, "elmo", "both", "top", "mean")


@dataclass(frozen=True)
class Variant:
    """One choice of input."""

    name: str
    words: bool
    """Whether there are word vectors."""
    elmo: str
    """The mix of ELMo layers; empty without ELMo."""
    at: str = "input"
    """Where the mix enters the task's own network: the setting `elmo_at`."""
    chars: bool = True
    """Whether there is the task's own character CNN, where the setting `chars` asks for one."""

    def settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The given settings with this input."""
        mix = {"elmo_at": self.at, "mix": self.elmo} if self.elmo else {"elmo_at": "none"}
        return dict(given) | mix | ({} if self.chars else {"chars": 0})

    def inputs(self, chars: int) -> str:
        """The input in words, for a table."""
        parts = [*(["word vectors"] if self.words else []), *([f"{chars} character filters"] if chars else [])]
        if self.elmo:
            what = f"ELMo layer {self.elmo}" if self.elmo.isdecimal() else f"ELMo ({self.elmo})"
            parts.append(what + {"input": "", "output": " at the output", "both": " at input and output"}[self.at])
        return " + ".join(parts)


def variant(name: str) -> Variant:
    """The variant of that name; a number is that layer alone."""
    if name.isdecimal():
        return Variant(f"layer {name}", words=False, elmo=name, chars=False)
    known = {
        WORDS: Variant(name, words=True, elmo=""),
        "static": Variant(name, words=False, elmo="0"),
        "elmo": Variant(name, words=False, elmo="weighted", chars=False),
        "both": Variant(name, words=True, elmo="weighted"),
        "top": Variant(name, words=True, elmo="top"),
        "mean": Variant(name, words=True, elmo="mean"),
        "output": Variant(name, words=True, elmo="weighted", at="output"),
        "input+output": Variant(name, words=True, elmo="weighted", at="both"),
    }
    if name not in known:
        raise ConfigError(f"there is no variant {name!r}; accepted: {', '.join(known)}, or the number of a layer")
    return known[name]


@dataclass(frozen=True)
class Outcome:
    """One variant, measured with each seed."""

    name: str
    measure: str
    values: list[float]
    inputs: str = ""
    """The input in words."""

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return statistics.fmean(self.values)

    @property
    def spread(self) -> float:
        """The standard deviation over the seeds; 0 for one seed."""
        return statistics.stdev(self.values) if len(self.values) > 1 else 0.0

    def error_reduction(self, base: Outcome) -> float:
        """The share of the other's error that this one avoids."""
        return (self.mean - base.mean) / (1 - base.mean) if base.mean < 1 else 0.0


@dataclass(frozen=True)
class VariantStarted:
    """The training of a variant with a seed starts."""

    name: str
    seed: int


def compare(
    task: Task[Example, ItemT, Answer, SettingsT],
    elmo: Embedder,
    *,
    train: Dataset[Example, Answer],
    dev: Dataset[Example, Answer] | None = None,
    test: Dataset[Example, Answer] | None = None,
    vectors: Vectors | str | PathLike[str] | None = None,
    cache: str | PathLike[str] | None = None,
    variants: Sequence[str] = USUAL,
    seeds: Sequence[int] = (1, 2, 3),
    **settings: Any,
) -> Iterator[Event | VariantStarted | Outcome]:
    """Fit every variant with every seed; an Outcome follows each variant.

    Measured on `test`, or without it on the dev set of each run. Without `vectors`, word vectors are trained from
    scratch. `chars` among the settings gives every variant a character CNN too, except `elmo` and single layers.
    """
    chosen = [(one, check_settings(one.settings(settings), task.settings)) for one in map(variant, variants)]
    shared = load_vectors(vectors or SCRATCH)
    for one, checked in chosen:
        values, measure = [], ""
        for seed in seeds:
            yield VariantStarted(one.name, seed)
            given = one.settings(settings) | {"seed": seed}
            fitted = task.estimator()(elmo, vectors=shared if one.words else None, cache=cache, **given)
            yield from fitted.events(train, dev=dev)
            if test is not None:
                yield from fitted.store_layers(test.examples)
                found = fitted.prepared_.measure(test.answers, fitted.answers(test.examples))
                values.append(found.value)
                measure = found.name
            else:
                values.append(fitted.best_)
                measure = fitted.prepared_.measure([], []).name
        yield Outcome(one.name, measure, values, one.inputs(checked.chars))


def rows(outcomes: Sequence[Outcome]) -> tuple[list[str], list[list[str]]]:
    """A table: names of columns, and one row per outcome."""
    base = next((outcome for outcome in outcomes if outcome.name == WORDS), None)
    names = ["variant", "input", outcomes[0].measure if outcomes else "", "spread", "seeds"]
    found = []
    for outcome in outcomes:
        each = " ".join(f"{value:.4f}" for value in outcome.values)
        found.append([outcome.name, outcome.inputs, f"{outcome.mean:.4f}", f"{outcome.spread:.4f}", each])
        if base is not None:
            found[-1].append("" if outcome is base else f"{outcome.error_reduction(base):+.1%}")
    return [*names, *(["error reduction"] if base is not None else [])], found


def markdown(outcomes: Sequence[Outcome]) -> str:
    """The same table as Markdown."""
    names, found = rows(outcomes)
    lines = [f"| {' | '.join(row)} |" for row in (names, ["---"] * len(names), *found)]
    return "\n".join(lines) + "\n"

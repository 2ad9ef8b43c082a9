"""The same head with word vectors only, ELMo only, both, other mixes, single layers: over several seeds.

Knows: Task. Blind to: files, the command line.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from bilmo.embed.embedder import Embedder
from bilmo.errors import ConfigError
from bilmo.store.vectors_file import Vectors
from bilmo.tasks.core.estimator import Task
from bilmo.tasks.core.events import Event
from bilmo.tasks.core.examples import Examples
from bilmo.tasks.network.words import SCRATCH, loaded

WORDS = "words"
USUAL = (WORDS, "elmo", "both", "top", "mean")


@dataclass(frozen=True)
class Variant:
    """What goes in."""

    name: str
    words: bool
    """Word vectors."""
    settings: dict[str, Any]
    """Of ELMo."""


def variant(name: str) -> Variant:
    """words: word vectors only. elmo: the weighted mix alone. both: joined. top, mean: joined, with that mix instead.

    A number is that layer alone.
    """
    if name.isdecimal():
        return Variant(f"layer {name}", words=False, settings={"at": "input", "mix": (int(name),)})
    known = {
        WORDS: Variant(name, words=True, settings={"at": "none"}),
        "elmo": Variant(name, words=False, settings={"at": "input", "mix": "weighted"}),
        "both": Variant(name, words=True, settings={"at": "input", "mix": "weighted"}),
        "top": Variant(name, words=True, settings={"at": "input", "mix": "top"}),
        "mean": Variant(name, words=True, settings={"at": "input", "mix": "mean"}),
    }
    if name not in known:
        raise ConfigError(f"there is no variant {name!r}; known are {', '.join(known)}, or the number of a layer")
    return known[name]


@dataclass(frozen=True)
class Outcome:
    """One variant, measured with each seed."""

    name: str
    measure: str
    values: list[float]

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return statistics.fmean(self.values)

    @property
    def spread(self) -> float:
        """The standard deviation over the seeds; 0 for one seed."""
        return statistics.stdev(self.values) if len(self.values) > 1 else 0.0

    def error_reduction(self, base: Outcome) -> float:
        """Share of the other's error that is gone."""
        return (self.mean - base.mean) / (1 - base.mean) if base.mean < 1 else 0.0


@dataclass(frozen=True)
class Begun:
    """A variant begins to learn with a seed."""

    name: str
    seed: int


def compare(
    kind: type[Task],
    elmo: Embedder,
    *,
    train: Examples,
    dev: Examples | None = None,
    test: Examples | None = None,
    vectors: Vectors | str | PathLike[str] | None = None,
    cache: str | PathLike[str] | None = None,
    variants: Sequence[str] = USUAL,
    seeds: Sequence[int] = (1, 2, 3),
    **settings: Any,
) -> Iterator[Event | Begun | Outcome]:
    """Fit every variant with every seed; an Outcome for each variant comes when it is done.

    Measured on `test`, or where there is none, on what each run was judged by. Without `vectors`, word vectors are
    trained from scratch.
    """
    chosen = [variant(name) for name in variants]  # all must be known before the first one learns
    shared = loaded(vectors or SCRATCH)
    for one in chosen:
        values, measure = [], ""
        for seed in seeds:
            yield Begun(one.name, seed)
            given = shared if one.words else None
            task = kind(elmo, vectors=given, cache=cache, **(settings | one.settings | {"seed": seed}))
            yield from task.events(*train, dev=dev)
            if test is not None:
                yield from task.keep(test[0])
                found = task.measure(test[1], task.predict(test[0]))
                values.append(found.value)
                measure = found.name
            else:
                values.append(task.best_)
                measure = task.measure([], []).name
        yield Outcome(one.name, measure, values)


def rows(outcomes: Sequence[Outcome]) -> tuple[list[str], list[list[str]]]:
    """A table: names of columns, and a row an outcome."""
    base = next((outcome for outcome in outcomes if outcome.name == WORDS), None)
    names = ["variant", outcomes[0].measure if outcomes else "", "spread", "seeds"]
    found = []
    for outcome in outcomes:
        each = " ".join(f"{value:.4f}" for value in outcome.values)
        found.append([outcome.name, f"{outcome.mean:.4f}", f"{outcome.spread:.4f}", each])
        if base is not None:
            found[-1].append("" if outcome is base else f"{outcome.error_reduction(base):+.1%}")
    return [*names, *(["error reduction"] if base is not None else [])], found


def markdown(outcomes: Sequence[Outcome]) -> str:
    """The same table as Markdown."""
    names, found = rows(outcomes)
    lines = [f"| {' | '.join(row)} |" for row in (names, ["---"] * len(names), *found)]
    return "\n".join(lines) + "\n"

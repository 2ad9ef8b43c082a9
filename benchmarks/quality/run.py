"""What ELMo adds to five tasks, and which layer knows parts of speech: means and spread over seeds.

    python benchmarks/quality/run.py MODEL                    all of it; hours
    python benchmarks/quality/run.py MODEL --only trec,sst5   some of it; the table still shows all that is on record
    python benchmarks/quality/run.py MODEL --examples 200     a slice, to see that it runs; nothing is saved

Outcomes are put down one by one (results/quality.jsonl): the same command again goes on after the last.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import data

import bilmo
from bilmo.store.vectors_file import Vectors
from bilmo.tasks.core import compare
from bilmo.tasks.core.compare import Outcome
from bilmo.tasks.core.events import Epoch
from bilmo.tasks.core.folder import TASKS
from bilmo.tasks.core.settings import settings_of
from bilmo.tasks.network import words

RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True)
class Question:
    """What is asked of a data set."""

    name: str
    data: str
    variants: tuple[str, ...] = compare.USUAL
    settings: dict[str, Any] = field(default_factory=dict)


QUESTIONS = (
    Question("sst5", "sst5", settings={"head": "mean"}),
    Question("trec", "trec", settings={"head": "bilstm"}),
    Question("wnut17", "wnut17", settings={"patience": 8, "batch": 64, "rate": 0.002}),
    Question("wikigold", "wikigold", settings={"patience": 8}),
    Question("ud_english_ewt", "ud_english_ewt", settings={"patience": 3, "batch": 64, "rate": 0.002}),
    Question("parts of speech by layer", "ud_english_ewt", ("0", "1", "2"), {"head": "linear", "dropout": 0.0}),
)
NARROW = {"dropout": 0.2}
"""For word vectors alone: they have 50 numbers, and half of them dropped would make the baseline look bad."""
ASKED = "both"
"""What the goals are asked of, chosen before anything was measured."""
GOALS = {"sst5": 0.068, "wnut17": 0.21, "wikigold": 0.21}
"""Error reduction over word vectors alone that the paper had for sentiment and entities."""


@dataclass(frozen=True)
class Run:
    """One command: the model and all that holds for every question."""

    name: str
    elmo: bilmo.Embedder
    vectors: Vectors | str
    seeds: int
    epochs: int

    def variants(self, question: Question) -> list[str]:
        """Those that this model has the layers for."""
        return [name for name in question.variants if not name.isdecimal() or int(name) <= self.elmo.config.layers]

    def settings(self, question: Question, name: str) -> dict[str, Any]:
        return question.settings | (NARROW if name == compare.WORDS else {}) | {"epochs": self.epochs}

    def key(self, question: Question, name: str) -> dict[str, Any]:
        """All that decides an outcome but the data; what a variant does not use is no part of it."""
        chosen = compare.variant(name)
        settings = asdict(settings_of(self.settings(question, name) | chosen.settings))
        del settings["seed"]
        key = {
            "question": question.name,
            "variant": name,
            "model": "" if name == compare.WORDS else self.elmo.bundle.identity(),
            "vectors": words.identity(self.vectors) if chosen.words else "",
            "settings": settings,
            "seeds": self.seeds,
        }
        return dict(json.loads(json.dumps(key)))  # as it is read back


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="en")
    parser.add_argument("--examples", type=int, help="only so many of each data set; nothing is saved")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--only", default="", help="names of questions, with commas between")
    given = parser.parse_args(arguments)
    run = Run(given.model, bilmo.load(given.model), words.loaded(data.VECTORS), given.seeds, given.epochs)
    log = RESULTS / "quality.jsonl"
    for question in QUESTIONS:
        if given.only and question.name not in given.only.split(","):
            continue
        some = data.slice_of(data.SETS[question.data](), given.examples)
        digest = hashlib.sha256(json.dumps([some.train, some.dev, some.test]).encode()).hexdigest()
        outcomes = []
        for name in run.variants(question):
            key = {"key": run.key(question, name), "data": digest}
            outcome = None if given.examples else recorded(log, key)
            if outcome is None:
                outcome = measured(run, question, some, name)
                if not given.examples:
                    with log.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(key | {"outcome": asdict(outcome)}) + "\n")
            outcomes.append(outcome)
        print(section(question, outcomes), flush=True)
        if not given.examples:
            (RESULTS / "quality.md").write_text(page(run, log), encoding="utf-8")


def recorded(log: Path, wanted: dict[str, Any]) -> Outcome | None:
    """The last outcome on record of which all this is true."""
    rows = log.read_text("utf-8").splitlines() if log.exists() else []
    entries = [json.loads(row) for row in rows]
    fitting = [entry["outcome"] for entry in entries if all(entry[name] == value for name, value in wanted.items())]
    return Outcome(**fitting[-1]) if fitting else None


def measured(run: Run, question: Question, some: data.DataSet, name: str) -> Outcome:
    events = compare.compare(
        TASKS[some.task],
        run.elmo,
        train=some.train,
        dev=some.dev,
        test=some.test,
        vectors=run.vectors,
        variants=[name],
        seeds=range(1, run.seeds + 1),
        **run.settings(question, name),
    )
    for event in events:
        if isinstance(event, Epoch):
            print(
                f"{question.name}, {name}: epoch {event.number}, dev {event.value:.4f}, {event.seconds:.1f} s",
                flush=True,
            )
        elif isinstance(event, Outcome):
            found = event
    return found


def page(run: Run, log: Path) -> str:
    """Everything on record of this model, whichever questions were asked last."""
    usual = settings_of({}).dropout
    parts = [
        f"# Quality\n\n{date.today()}, model `{run.name}`, {run.seeds} seeds, at most {run.epochs} epochs\n\n"
        f"`words` has dropout {NARROW['dropout']}, the others {usual} where nothing is said: it has the 50 numbers of "
        "GloVe alone, and half of them dropped would make the baseline look worse than it is.\n"
    ]
    for question in QUESTIONS:
        found = [recorded(log, {"key": run.key(question, name)}) for name in run.variants(question)]
        outcomes = [outcome for outcome in found if outcome is not None]
        if outcomes:
            parts.append(section(question, outcomes))
    return "\n".join(parts)


def section(question: Question, outcomes: list[Outcome]) -> str:
    """A table, and what it is to be compared with."""
    rows = [f"## {question.name}", "", compare.markdown(outcomes)]
    by_name = {outcome.name: outcome for outcome in outcomes}
    base, asked = by_name.get(compare.WORDS), by_name.get(ASKED)
    if base is not None:
        published = data.PUBLISHED.get(question.data)
        if published is None:
            rows.append("No published figure for this cut.\n")
        else:
            value, what = published
            rows.append(f"Published: {value:.4f}, {what}; `words` is {base.mean - value:+.4f} from it.\n")
    if base is not None and asked is not None and question.name in GOALS:
        reached = f"reached with `{ASKED}`: {asked.error_reduction(base):.1%}"
        best = max(outcomes, key=lambda outcome: outcome.mean)
        if best is not asked:
            reached += f" (the best of all is `{best.name}`: {best.error_reduction(base):.1%})"
        rows.append(f"Goal: {GOALS[question.name]:.1%} of the error gone; {reached}.\n")
    if question.data == "ud_english_ewt" and base is None:
        best = max(outcomes, key=lambda outcome: outcome.mean)
        rows.append(f"Best is {best.name}. The paper, on other data: layer 1 0.973, layer 2 0.968.\n")
    return "\n".join(rows)


if __name__ == "__main__":
    main()

"""What ELMo adds to five tasks, and which layer knows parts of speech: means and spread over seeds.

    python benchmarks/quality/run.py MODEL                    all of it; hours
    python benchmarks/quality/run.py MODEL --examples 200     a slice, to see that it runs; nothing is saved

Outcomes are put down one by one (results/quality.jsonl): the same command again goes on after the last.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import data

import bilmo
from bilmo.tasks import compare
from bilmo.tasks.bilm import identity
from bilmo.tasks.compare import Outcome
from bilmo.tasks.events import Epoch
from bilmo.tasks.folder import TASKS
from bilmo.tasks.words import loaded

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
    Question("wnut17", "wnut17", settings={"patience": 8}),
    Question("wikigold", "wikigold", settings={"patience": 8}),
    Question("ud_english_ewt", "ud_english_ewt", settings={"patience": 3}),
    Question("parts of speech by layer", "ud_english_ewt", ("0", "1", "2"), {"head": "linear", "dropout": 0.0}),
)
NARROW = {"dropout": 0.2}
"""For word vectors alone: they have 50 numbers, and half of them dropped would make the baseline look bad."""
GOALS = {"sst5": 0.068, "wnut17": 0.21, "wikigold": 0.21}
"""Error reduction over word vectors alone that the paper had for sentiment and entities."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="en")
    parser.add_argument("--examples", type=int, help="only so many of each data set; nothing is saved")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--only", default="", help="names of questions, with commas between")
    given = parser.parse_args()
    elmo = bilmo.load(given.model)
    vectors = loaded(data.VECTORS)
    log = RESULTS / "quality.jsonl"
    done = (
        [] if given.examples or not log.exists() else [json.loads(row) for row in log.read_text("utf-8").splitlines()]
    )
    parts = []
    for question in QUESTIONS:
        if given.only and question.name not in given.only.split(","):
            continue
        some = data.slice_of(data.SETS[question.data](), given.examples)
        outcomes = []
        for name in question.variants:
            if name.isdecimal() and int(name) > elmo.config.layers:
                continue
            settings = question.settings | (NARROW if name == compare.WORDS else {})
            key = [identity(elmo.bundle), question.name, name, settings, given.seeds, given.epochs]
            outcome = next((Outcome(**entry["outcome"]) for entry in done if entry["key"] == key), None)
            if outcome is None:
                outcome = measured(elmo, vectors, question.name, settings, some, name, given.seeds, given.epochs)
                if not given.examples:
                    with log.open("a", encoding="utf-8") as file:
                        file.write(json.dumps({"key": key, "outcome": asdict(outcome)}) + "\n")
            outcomes.append(outcome)
        parts.append(section(question, some, outcomes))
        print(parts[-1], flush=True)
        if not given.examples:
            head = f"# Quality\n\n{date.today()}, model `{given.model}`, GloVe of 50, {given.seeds} seeds\n"
            (RESULTS / "quality.md").write_text("\n".join([head, *parts]), encoding="utf-8")


def measured(
    elmo: bilmo.Embedder,
    vectors: Any,
    question: str,
    settings: dict[str, Any],
    some: data.DataSet,
    name: str,
    seeds: int,
    epochs: int,
) -> Outcome:
    events = compare.compare(
        TASKS[some.task],
        elmo,
        train=some.train,
        dev=some.dev,
        test=some.test,
        vectors=vectors,
        variants=[name],
        seeds=range(1, seeds + 1),
        epochs=epochs,
        **settings,
    )
    for event in events:
        if isinstance(event, Epoch):
            print(
                f"{question}, {name}: epoch {event.number}, dev {event.value:.4f}, {event.seconds:.1f} s",
                flush=True,
            )
        elif isinstance(event, Outcome):
            found = event
    return found


def section(question: Question, some: data.DataSet, outcomes: list[Outcome]) -> str:
    """A table, and what it is to be compared with."""
    rows = [f"## {question.name}", "", compare.markdown(outcomes)]
    base = next((outcome for outcome in outcomes if outcome.name == compare.WORDS), None)
    if base is not None and some.published is not None:
        what, value = some.published
        rows.append(f"Published: {value:.4f}, {what}; `words` is {base.mean - value:+.4f} from it.\n")
    if base is not None and question.name in GOALS:
        best = max(outcomes, key=lambda outcome: outcome.mean)
        reached = best.error_reduction(base)
        rows.append(f"Goal: {GOALS[question.name]:.1%} of the error gone; reached with `{best.name}`: {reached:.1%}.\n")
    if question.data == "ud_english_ewt" and base is None:
        best = max(outcomes, key=lambda outcome: outcome.mean)
        rows.append(f"Best is {best.name}. The paper, on other data: layer 1 0.973, layer 2 0.968.\n")
    return "\n".join(rows)


if __name__ == "__main__":
    main()

"""What ELMo adds on several data sets, and which layer predicts parts of speech best: means and spread over seeds.

    python benchmarks/quality/run.py MODEL                    everything; takes hours
    python benchmarks/quality/run.py MODEL --only trec,sst5   a part; the table still shows all recorded outcomes
    python benchmarks/quality/run.py MODEL --examples 200     a slice, to see that it runs; nothing is saved

Each outcome is recorded when it is known (results/quality.jsonl); the same command again resumes after the last one.
`words` is word vectors and the task's own character CNN, as in the paper's baselines; the other variants with word
vectors have it too.
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
from bilmo.tasks.answer.task import ANSWER_TASK
from bilmo.tasks.classify.task import CLASSIFY
from bilmo.tasks.core import compare
from bilmo.tasks.core.compare import Outcome
from bilmo.tasks.core.events import Epoch
from bilmo.tasks.core.settings import Settings, check_settings
from bilmo.tasks.core.spec import AnyTask
from bilmo.tasks.coref.task import COREF
from bilmo.tasks.entail.task import ENTAIL
from bilmo.tasks.network import words
from bilmo.tasks.relate.task import RELATE
from bilmo.tasks.roles.task import ROLES
from bilmo.tasks.tag.task import TAG

RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True)
class Question:
    """One comparison on a data set."""

    name: str
    task: AnyTask
    data: str
    variants: tuple[str, ...] = compare.USUAL
    settings: dict[str, Any] = field(default_factory=dict)


QUESTIONS = (
    Question("sst5", CLASSIFY, "sst5", settings={"head": "mean"}),
    Question("trec", CLASSIFY, "trec", settings={"head": "bilstm"}),
    Question("wnut17", TAG, "wnut17", settings={"patience": 8, "batch": 64, "rate": 0.002}),
    Question("wikigold", TAG, "wikigold", settings={"patience": 8}),
    Question("ud_english_ewt", TAG, "ud_english_ewt", settings={"patience": 3, "batch": 64, "rate": 0.002}),
    Question("parts of speech by layer", TAG, "ud_english_ewt", ("0", "1", "2"), {"head": "linear", "dropout": 0.0}),
    Question("squad", ANSWER_TASK, "squad", (*compare.USUAL, "output", "input+output"), {"patience": 3}),
    Question("roles", ROLES, "roles", (*compare.USUAL, "output", "input+output"), {"patience": 3}),
    Question("coref", COREF, "coref"),
    Question("sick", ENTAIL, "sick", (*compare.USUAL, "output", "input+output")),
    Question("relations", RELATE, "relations", (*compare.USUAL, "output", "input+output")),
)
CHARS = 128
"""Filters of the character CNN beside word vectors: as many as in the paper's baseline for entities."""
NARROW = {"dropout": 0.2}
"""For the narrow input of `words`: dropping half of 50 numbers would make the baseline worse than it is."""
ASKED = "both"
"""The variant that is compared with the goals; chosen before anything was measured."""
GOALS = {
    "sst5": 0.068,
    "wnut17": 0.21,
    "wikigold": 0.21,
    "sick": 0.058,
    "roles": 0.172,
    "squad": 0.249,
    "coref": 0.098,
    "relations": 0.10,
}
"""The paper's error reduction over its baselines. The one for relations is our own."""


@dataclass(frozen=True)
class Run:
    """One command: the model and everything that is the same for all questions."""

    name: str
    elmo: bilmo.Embedder
    vectors: Vectors | str
    seeds: int
    epochs: int

    def variants(self, question: Question) -> list[str]:
        """The variants that this model has the layers for."""
        return [name for name in question.variants if not name.isdecimal() or int(name) <= self.elmo.config.layers]

    def settings(self, question: Question, name: str) -> dict[str, Any]:
        narrow = NARROW if name == compare.WORDS else {}
        given = {"chars": CHARS} | question.settings | narrow | {"epochs": self.epochs}
        return compare.variant(name).settings(given)

    def key(self, question: Question, name: str) -> dict[str, Any]:
        """Everything that decides an outcome except the data; what a variant does not use is left out."""
        chosen = compare.variant(name)
        settings = asdict(check_settings(self.settings(question, name), question.task.settings))
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
    parser.add_argument("--examples", type=int, help="use this many examples of each data set; nothing is saved")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--only", default="", help="names of questions, separated by commas")
    given = parser.parse_args(arguments)
    run = Run(given.model, bilmo.load(given.model), words.load_vectors(data.VECTORS), given.seeds, given.epochs)
    log = RESULTS / "quality.jsonl"
    for question in QUESTIONS:
        if given.only and question.name not in given.only.split(","):
            continue
        some = data.slice_of(data.SETS[question.data](), given.examples)
        digest = hashlib.sha256(
            json.dumps([part and part[:2] for part in (some.train, some.dev, some.test)]).encode()
        ).hexdigest()
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
    """The last recorded outcome with these values."""
    rows = log.read_text("utf-8").splitlines() if log.exists() else []
    entries = [json.loads(row) for row in rows]
    fitting = [entry["outcome"] for entry in entries if all(entry[name] == value for name, value in wanted.items())]
    return Outcome(**fitting[-1]) if fitting else None


def measured(run: Run, question: Question, some: data.DataSet, name: str) -> Outcome:
    events = compare.compare(
        question.task,
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
    """All recorded outcomes of this model."""
    usual = Settings().dropout
    parts = [
        f"# Quality\n\n{date.today()}, model `{run.name}`, {run.seeds} seeds, at most {run.epochs} epochs\n\n"
        f"Every variant with word vectors has the task's own character CNN too ({CHARS} filters), as the paper's "
        f"baselines. `words` has dropout {NARROW['dropout']}, the others {usual} unless their settings differ: "
        "dropping half of a narrow input would make the baseline worse than it is.\n"
    ]
    for question in QUESTIONS:
        found = [recorded(log, {"key": run.key(question, name)}) for name in run.variants(question)]
        outcomes = [outcome for outcome in found if outcome is not None]
        if outcomes:
            parts.append(section(question, outcomes))
    return "\n".join(parts)


def section(question: Question, outcomes: list[Outcome]) -> str:
    """A table, and published results to compare it with."""
    rows = [f"## {question.name}", "", compare.markdown(outcomes)]
    by_name = {outcome.name: outcome for outcome in outcomes}
    base, asked = by_name.get(compare.WORDS), by_name.get(ASKED)
    if base is not None:
        published = data.PUBLISHED.get(question.data)
        if published is None:
            rows.append("There is no published figure for this split.\n")
        else:
            value, what = published
            rows.append(f"Published: {value:.4f}, {what}; `words` is {base.mean - value:+.4f} from it.\n")
    if base is not None and asked is not None and question.name in GOALS:
        reached = f"reached with `{ASKED}`: {asked.error_reduction(base):.1%}"
        best = max(outcomes, key=lambda outcome: outcome.mean)
        if best is not asked:
            reached += f" (best variant: `{best.name}`, {best.error_reduction(base):.1%})"
        rows.append(f"Goal: an error reduction of {GOALS[question.name]:.1%}; {reached}.\n")
    if question.data == "ud_english_ewt" and base is None:
        best = max(outcomes, key=lambda outcome: outcome.mean)
        rows.append(f"Best is {best.name}. The paper, on other data: layer 1 0.973, layer 2 0.968.\n")
    return "\n".join(rows)


if __name__ == "__main__":
    main()

"""What ELMo adds to each task: the tables and figures of the paper, on the data at hand.

    python benchmarks/quality/run.py MODEL                          everything; takes many hours
    python benchmarks/quality/run.py MODEL --only table1 --data sick,trec     a part of it
    python benchmarks/quality/run.py MODEL --examples 200           a slice, to see that it runs; nothing is saved

Each fit is recorded when it is done (results/quality.jsonl), and results/quality.md shows everything that is recorded
for the model. The same command again resumes after the last recorded fit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import data
import tables
import torch
from plan import CHARS, DATA_SETS, NARROW, PARTS, Fit

import bilmo
from bilmo.store.vectors_file import Vectors
from bilmo.tasks.core import compare
from bilmo.tasks.core.events import Epoch, Event, Step
from bilmo.tasks.core.settings import check_settings
from bilmo.tasks.network import words

RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True)
class Run:
    """One command: the model, and everything that is the same for all fits."""

    name: str
    elmo: bilmo.Embedder
    vectors: Vectors | str
    epochs: int
    minutes: float
    examples: int | None

    @cached_property
    def model(self) -> str:
        """The hash of the model."""
        return self.elmo.bundle.identity()

    def settings(self, fit: Fit) -> dict[str, Any]:
        """The settings of a fit by name."""
        narrow = NARROW if fit.variant == compare.WORDS else {}
        penalty = {} if fit.l2 is None else {"l2": fit.l2}
        given = {"chars": CHARS} | DATA_SETS[fit.data].settings | narrow | {"epochs": self.epochs} | penalty
        return compare.variant(fit.variant).settings(given) | {"seed": fit.seed}

    def key(self, fit: Fit) -> dict[str, Any]:
        """Everything that decides the result of a fit, except the examples."""
        chosen = compare.variant(fit.variant)
        settings = check_settings(self.settings(fit), DATA_SETS[fit.data].task.settings)
        key = {
            "data": fit.data,
            "variant": fit.variant,
            "share": fit.share,
            "seed": fit.seed,
            "minutes": self.minutes,
            "model": self.model if chosen.elmo else "",
            "vectors": words.identity(self.vectors) if chosen.words else "",
            "settings": asdict(settings),
        }
        return dict(json.loads(json.dumps(key)))  # as it is read back


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="en")
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts, separated by commas: {', '.join(PARTS)}")
    parser.add_argument("--data", default=",".join(DATA_SETS), help="names of data sets, separated by commas")
    parser.add_argument("--examples", type=int, help="use this many examples of each data set; nothing is saved")
    parser.add_argument("--epochs", type=int, default=50, help="maximum number of epochs")
    parser.add_argument("--minutes", type=float, default=10.0, help="maximum processor time of a training")
    given = parser.parse_args(arguments)
    elmo, vectors = bilmo.load(given.model), words.load_vectors(data.VECTORS)
    run = Run(given.model, elmo, vectors, given.epochs, given.minutes, given.examples)
    log = RESULTS / "quality.jsonl"
    for fit in chosen_fits(run, given.only.split(","), given.data.split(",")):
        row = None if run.examples else recorded(log, run.key(fit))
        if row is None:
            row = run.key(fit) | measured(run, fit)
            if not run.examples:
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                write_page(run, log)
            print(f"{fit}: {row['measure']} {row['value']:.4f}", flush=True)
    if not run.examples:
        write_page(run, log)


def chosen_fits(run: Run, parts: Sequence[str], names: Sequence[str]) -> Iterator[Fit]:
    """Each fit once; all first seeds before all second ones, so that an unfinished run has a bit of everything."""
    fits = dict.fromkeys(fit for part in parts for fit in PARTS[part] if fit.data in names)
    for fit in sorted(fits, key=lambda fit: fit.seed):
        if not fit.variant.isdecimal() or int(fit.variant) <= run.elmo.config.layers:
            yield fit


def recorded(log: Path, key: dict[str, Any]) -> dict[str, Any] | None:
    """The last recorded fit with these values."""
    rows = [row for row in read_log(log) if all(row[name] == value for name, value in key.items())]
    return rows[-1] if rows else None


def read_log(log: Path) -> list[dict[str, Any]]:
    """All recorded fits."""
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    return [json.loads(line) for line in lines]


def measured(run: Run, fit: Fit) -> dict[str, Any]:
    """Train once and measure on the test set."""
    some = data.slice_of(data.SETS[fit.data](), run.examples)
    train = data.share_of(some.train, fit.share)
    vectors = run.vectors if compare.variant(fit.variant).words else None
    estimator = DATA_SETS[fit.data].task.estimator()(run.elmo, vectors=vectors, **run.settings(fit))
    events = cast("Generator[Event]", estimator.events(train, dev=some.dev))
    started, epochs, capped = None, 0, False
    for event in events:
        if isinstance(event, Step):
            started = time.process_time() if started is None else started
            capped = time.process_time() - started > 60 * run.minutes
            if capped:
                events.close()  # the best epoch is in use from here
                break
        elif isinstance(event, Epoch):
            epochs = event.number
            print(f"{fit}: epoch {epochs}, dev {event.value:.4f}, {event.seconds:.1f} s", flush=True)
    for _ in estimator.store_layers(some.test.examples):
        pass
    found = estimator.prepared_.measure(some.test.answers, estimator.answers(some.test.examples))
    return {
        "examples": digest(some),
        "measure": found.name,
        "value": found.value,
        "dev": estimator.best_,
        "epochs": epochs,
        "capped": capped,
        "mixes": [asdict(mix) for mix in estimator.mixes_],
        "torch": torch.__version__,
    }


def digest(some: data.DataSet) -> str:
    """A hash of the examples."""
    parts = [part and part[:2] for part in (some.train, some.dev, some.test)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def write_page(run: Run, log: Path) -> None:
    """Everything that is recorded for the model, as tables and figures."""
    keys = {fit: run.key(fit) for part in PARTS.values() for fit in part}
    rows = read_log(log)
    found = {}
    for fit, key in keys.items():
        fitting = [row for row in rows if all(row[name] == value for name, value in key.items())]
        if fitting:
            found[fit] = tables.Result(**{name: fitting[-1][name] for name in tables.RESULT_FIELDS})
    title = f"model `{run.name}` ({run.model[:12]}), at most {run.minutes:g} minutes of processor time per fit"
    (RESULTS / "quality.md").write_text(tables.page(title, found), encoding="utf-8")
    for name, picture in tables.figures(found).items():
        (RESULTS / name).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()

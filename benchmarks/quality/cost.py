"""Time and memory of one fit of each task with a frozen model: minutes, peak memory, words per second.

    python benchmarks/quality/cost.py MODEL [--only sick,squad] [--examples N]

Each task is fitted in a process of its own with its default settings, so that its memory can be measured. The goal is
30 minutes on two cores and 4 GB. The layers of a data set are computed anew, in an empty cache.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import data
import torch
from plan import DATA_SETS

import bilmo
from bilmo.tasks.core.events import Epoch, Step
from bilmo.tasks.network.batch import tokens_of

RESULTS = Path(__file__).parents[1] / "results"
MEASURED = ("squad", "sick", "roles", "coref", "relations")
MINUTES, GIGABYTES = 30, 4


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="en")
    parser.add_argument("--only", default=",".join(MEASURED), help="names of data sets, separated by commas")
    parser.add_argument("--examples", type=int, help="use this many examples of each data set; nothing is saved")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    names = given.only.split(",")
    if given.worker:
        print(json.dumps(worker(given.model, names[0], given.examples)))
        return
    rows = []
    for name in names:
        rows.append(measured(given.model, name, given.examples))
        print(markdown(rows[-1:]), flush=True)
    if given.examples is None:
        title = f"# Cost of the tasks\n\n{date.today()}, model `{given.model}`, {torch.get_num_threads()} threads\n"
        goal = f"\nGoal: {MINUTES} minutes and {GIGABYTES} GB. Made by `benchmarks/quality/cost.py`.\n"
        (RESULTS / "cost.md").write_text(title + "\n" + markdown(rows) + goal, encoding="utf-8")


def measured(model: str, name: str, examples: int | None) -> dict[str, Any]:
    """One fit in a process of its own, with its peak memory."""
    slices = [] if examples is None else ["--examples", str(examples)]
    command = [sys.executable, __file__, model, "--only", name, "--worker", *slices]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{name}: the fit ended with code {process.returncode}")
    return json.loads(said.splitlines()[-1]) | {"data": name, "gigabytes": usage.ru_maxrss / 2**20}


def worker(model: str, name: str, examples: int | None) -> dict[str, Any]:
    """Fit once, then predict the test set."""
    some = data.slice_of(data.SETS[name](), examples)
    elmo = bilmo.load(model)
    with tempfile.TemporaryDirectory() as cache:
        estimator = DATA_SETS[name].task.estimator()(elmo, cache=cache)
        started = time.perf_counter()
        epochs = 0
        training = 0.0
        last = started
        for event in estimator.events(some.train, dev=some.dev):
            now = time.perf_counter()
            if isinstance(event, Step):
                training += now - last
            elif isinstance(event, Epoch):
                epochs = event.number
            last = now
        fitted = time.perf_counter()
        estimator.answers(some.test.examples)
        ended = time.perf_counter()
        train, test = (words(estimator, part) for part in (some.train, some.test))
    return {
        "minutes": (fitted - started) / 60,
        "epochs": epochs,
        "words": train,
        "trained": train * epochs / training,
        "predicted": test / (ended - fitted),
    }


def words(estimator: Any, some: data.Examples) -> int:
    """The number of tokens that the task reads."""
    return sum(tokens_of(item) for item in estimator.prepared_.items(list(some.examples)))


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    head = "| data | words | epochs | minutes | peak memory | words per second, training | prediction |"
    lines = [head, "|" + "---|" * head.count(" | ") + "---|"]
    for row in rows:
        size = f"{row['words']:,} | {row['epochs']} | {row['minutes']:.1f} | {row['gigabytes']:.1f} GB"
        lines.append(f"| {row['data']} | {size} | {row['trained']:,.0f} | {row['predicted']:,.0f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

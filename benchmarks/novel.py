"""Time to quality on one Chinese novel: bilmo's recipe `novel` against the old one, same split, vocabulary and judging.

The old recipe is bilm-tf's: Adagrad, an endless stream, 16 rows of 20 words, 8,192 sampled words, 512 cells, 256 wide,
2,048 filters over characters of 128. Both run on bilmo's own fast steps, so what is compared is the recipe alone.

Minutes are steps: the rate of each recipe is measured first, while nothing else runs, and then each is trained for
as many steps as fit into so many minutes at that rate. So the long part can run beside other work, be stopped, and
be gone on with in the same FOLDER.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from bilmo.train import recipe as recipes
from bilmo.train.events import Finished, Look, Step
from bilmo.train.recipe import NetworkRecipe, Recipe
from bilmo.train.run import train
from text import DATA

HERE = Path(__file__).parent
TEXT = DATA / "text" / "hongloumeng-zh.txt.xz"
OLD: dict[str, Any] = {
    "cells": 512, "width": 256, "char_width": 128, "filters": NetworkRecipe().filters, "max_characters": 50,
    "context": "stream", "batch": 320, "window": 20, "softmax": "sampled", "samples": 8192, "optimizer": "adagrad",
    "rate": 0.2, "warm_up": 0.0, "decay": False, "clip": 10.0, "dropout": 0.1, "average": 0.0,
    "weight_decay": 0.0, "patience": 0,
}  # fmt: skip
NEW: dict[str, Any] = {"patience": 0}
OLD_MINUTES, NEW_MINUTES = (5, 10, 20, 40, 60), (5, 10, 20, 40)
MEASURED = 40


def recipe_of(changes: dict[str, Any]) -> Recipe:
    """The recipe `novel`, changed."""
    return recipes.read("novel", changes)


def rate(changes: dict[str, Any]) -> tuple[float, float]:
    """Steps a minute, and steps an epoch."""
    with tempfile.TemporaryDirectory() as name:
        seconds, last = [], 0.0
        for event in train([TEXT], Path(name) / "run", recipe_of(changes | {"epochs": 1.0, "evaluate_every": 10**9})):
            if isinstance(event, Step):
                seconds.append(event.seconds)
                last = event.done
            if len(seconds) > MEASURED:
                return 60 / median(seconds[10:]), (len(seconds) - 1) / last
    raise RuntimeError("the text is too short to measure on")


def trained(folder: Path, changes: dict[str, Any], looks: list[int], per_epoch: float) -> dict[int, float]:
    """Train up to the last look; held-out perplexity at each, by its step."""
    every = math.gcd(*looks)
    recipe = recipe_of(changes | {"epochs": looks[-1] / per_epoch, "evaluate_every": every})
    found: dict[int, float] = {}
    if (folder / "train.jsonl").exists():
        events = map(json.loads, (folder / "train.jsonl").read_text(encoding="utf-8").splitlines())
        found = {event["number"]: event["mean"] for event in events if event["what"] == "look"}
    for event in train([TEXT], folder, recipe):
        if isinstance(event, Look):
            found[event.number] = event.mean
            print(f"{folder.name}: step {event.number}: {event.mean:.1f}", flush=True)
        elif isinstance(event, Finished):
            found[looks[-1]] = found[max(found)]
    return found


def main(folder: Path) -> None:
    """Measure rates once, then train whatever is not trained yet, then the table."""
    folder.mkdir(parents=True, exist_ok=True)
    rates = folder / "rates.json"
    if not rates.exists():
        rates.write_text(json.dumps({"old": rate(OLD), "new": rate(NEW)}), encoding="utf-8")
    (old, old_epoch), (new, new_epoch) = json.loads(rates.read_text(encoding="utf-8")).values()
    print(f"steps a minute: old {old:.1f}, new {new:.1f}", flush=True)
    five = round(5 * old)
    ours = {}
    for minutes in NEW_MINUTES[:2]:
        steps = round(minutes * new)
        ours[minutes] = trained(folder / f"new-{minutes}", NEW, [steps], new_epoch)[steps]
    theirs = trained(folder / "old", OLD, [five * m // 5 for m in OLD_MINUTES], old_epoch)
    for minutes in NEW_MINUTES[2:]:
        steps = round(minutes * new)
        ours[minutes] = trained(folder / f"new-{minutes}", NEW, [steps], new_epoch)[steps]
    rows = ["| minutes | old recipe | bilmo's `novel` |", "|---|---|---|"]
    for minutes in OLD_MINUTES:
        mine = f"{ours[minutes]:.1f}" if minutes in ours else ""
        rows.append(f"| {minutes} | {theirs[five * minutes // 5]:.1f} | {mine} |")
    table = "\n".join(rows)
    print(table)
    heading = (
        f"# Time to quality\n\n{date.today()}, made by `python benchmarks/novel.py FOLDER`, two cores: held-out "
        "perplexity (mean of both directions, full softmax, isolated sentences) of one classical Chinese novel. "
        f"Rates measured alone on the machine: old recipe {old:.0f} steps of 320 words a minute, new {new:.0f} of "
        f"{recipe_of(NEW).train.batch:,}; minutes are steps at these rates.\n\n"
    )
    (HERE / "results" / "novel.md").write_text(f"{heading}{table}\n", encoding="utf-8")


if __name__ == "__main__":
    if not TEXT.exists():
        sys.exit(f"The benchmark needs real text, and {TEXT} is not there. Set BILMO_DATA to its folder.")
    main(Path(sys.argv[1]))

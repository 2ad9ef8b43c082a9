"""Time to quality on one Chinese novel: bilmo's recipe `novel` against the old one, same split, vocabulary and judging.

The old recipe is bilm-tf's: Adagrad, an endless stream, 16 rows of 20 words, 8,192 sampled words, 512 cells, 256 wide,
2,048 filters over characters of 128. Both run on bilmo's own fast steps, so what is compared is the recipe alone.

Minutes are steps: the rate of each recipe, its looks at held-out text included, is measured first, while nothing else
runs, and then each is trained for as many steps as fit into so many minutes at that rate. So the long part can run
beside other work, be stopped, and be gone on with in the same FOLDER. What counts is the best model so far, which is
what lies in the folder of a run.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bilmo.embed.load import load
from bilmo.embed.perplexity import score
from bilmo.train import recipe as recipes
from bilmo.train.corpus import Corpus
from bilmo.train.events import Evaluation, Step
from bilmo.train.recipe import NetworkRecipe, Recipe
from bilmo.train.run import train
from text import DATA

HERE = Path(__file__).parent
TEXT = DATA / "text" / "hongloumeng-zh.txt.xz"
OLD: dict[str, Any] = {
    "cells": 512, "width": 256, "char_width": 128, "filters": NetworkRecipe().filters, "max_characters": 50,
    "activation": "relu", "highways": 1, "word_highways": 0,
    "context": "stream", "batch": 320, "window": 20, "softmax": "sampled", "samples": 8192, "optimizer": "adagrad",
    "rate": 0.2, "warm_up": 0.0, "decay": False, "clip": 10.0, "dropout": 0.1, "average": 0.0,
    "weight_decay": 0.0, "prior": "flat", "patience": 0,
    "epochs": 10.0,  # its rate does not fall, so it is stopped when its time is over
}  # fmt: skip
NEW: dict[str, Any] = {}
"""As it comes: it stops by itself when held-out text gets no better."""
OLD_MINUTES, NEW_MINUTES = (5, 10, 20, 40, 60), (5, 10, 20, 40)
LOOKS = {"old": 700, "new": 1170}
"""Steps between looks; the new recipe's are its own, one in a pass."""
ROUNDS, MEASURED = 7, 40


def recipe_of(changes: dict[str, Any]) -> Recipe:
    """The recipe `novel`, changed."""
    return recipes.read("novel", changes)


def rate(changes: dict[str, Any], between: int) -> tuple[float, float]:
    """Steps a minute with a look after so many, and steps an epoch."""
    with tempfile.TemporaryDirectory() as name:
        seconds, last, at = [], 0.0, 0.0
        recipe = recipe_of(changes | {"epochs": 1.0, "evaluate_every": MEASURED})
        for event in train([TEXT], Path(name) / "run", recipe):
            if isinstance(event, Step):
                seconds.append(event.seconds)
                last, at = event.done, time.perf_counter()
            elif isinstance(event, Evaluation):
                look = time.perf_counter() - at
                return 60 / (median(seconds[10:]) + look / between), (len(seconds) - 1) / last
    raise RuntimeError("the text is too short to measure on")


def trained(folder: Path, changes: dict[str, Any], steps: int, per_epoch: float, between: int) -> dict[int, float]:
    """Train for so many steps; held-out perplexity at each look, by its step."""
    recipe = recipe_of({"epochs": steps / per_epoch} | changes | {"evaluate_every": between})
    found: dict[int, float] = {}
    if (folder / "train.jsonl").exists():
        events = map(json.loads, (folder / "train.jsonl").read_text(encoding="utf-8").splitlines())
        found = {event["number"]: event["mean"] for event in events if event["event"] == "evaluation"}
        if max(found, default=0) >= steps:
            return found
    for event in train([TEXT], folder, recipe):
        if isinstance(event, Evaluation):
            found[event.number] = event.mean
            print(f"{folder.name}: step {event.number}: {event.mean:.1f}", flush=True)
            if event.number >= steps:
                break
    return found


def best(found: dict[int, float], step: int) -> float:
    """The best perplexity up to the first look from a step on."""
    last = min((number for number in found if number >= step), default=max(found))
    return min(perplexity for number, perplexity in found.items() if number <= last)


def of_known_words(folder: Path) -> float:
    """Perplexity of the best model of a run over all held-out words that it knows."""
    corpus = Corpus(folder / "training" / "corpus")
    held = corpus.text("held_out")
    sentences = np.split(np.array(corpus.words, dtype=object)[held.ids], held.ends[:-1])
    return score(load(folder), [sentence.tolist() for sentence in sentences]).known


def main(folder: Path) -> None:
    """Measure rates once, then train whatever is not trained yet, then the table."""
    folder.mkdir(parents=True, exist_ok=True)
    rates = folder / "rates.json"
    if not rates.exists():
        rounds = [(rate(OLD, LOOKS["old"]), rate(NEW, LOOKS["new"])) for _ in range(ROUNDS)]  # in turn: speeds drift
        found = [(median(each for each, _ in one), one[0][1]) for one in zip(*rounds, strict=True)]
        rates.write_text(json.dumps(dict(zip(("old", "new"), found, strict=True))), encoding="utf-8")
    (old, old_epoch), (new, new_epoch) = json.loads(rates.read_text(encoding="utf-8")).values()
    print(f"steps a minute: old {old:.1f}, new {new:.1f}", flush=True)
    ours = {}
    for minutes in NEW_MINUTES:
        steps = round(minutes * new)
        ours[minutes] = best(trained(folder / f"new-{minutes}", NEW, steps, new_epoch, LOOKS["new"]), steps)
    steps = math.ceil(OLD_MINUTES[-1] * old / LOOKS["old"]) * LOOKS["old"]  # up to a look
    theirs = trained(folder / "old", OLD, steps, old_epoch, LOOKS["old"])
    known = {name: f"{of_known_words(folder / name):.1f}" for name in ("old", *(f"new-{m}" for m in ours))}
    rows = ["| minutes | old recipe | of known words | bilmo's `novel` | of known words |", "|---|---|---|---|---|"]
    for minutes in OLD_MINUTES:
        old_known = known["old"] if minutes == OLD_MINUTES[-1] else ""  # the last model is the one that is left
        mine = f"{ours[minutes]:.1f} | {known[f'new-{minutes}']}" if minutes in ours else " | "
        rows.append(f"| {minutes} | {best(theirs, round(minutes * old)):.1f} | {old_known} | {mine} |")
    table = "\n".join(rows)
    print(table)
    heading = (
        f"# Time to quality\n\n{date.today()}, made by `python benchmarks/novel.py FOLDER`, two cores: held-out "
        "perplexity (mean of both directions, full softmax, isolated sentences) of one classical Chinese novel. "
        f"Rates measured alone on the machine: old recipe {old:.0f} steps of 320 words a minute, new {new:.0f} of "
        f"{recipe_of(NEW).train.batch:,}; minutes are steps at these rates; counted is the "
        "best up to the first look from then on.\n\n"
    )
    (HERE / "results" / "novel.md").write_text(f"{heading}{table}\n", encoding="utf-8")


if __name__ == "__main__":
    if not TEXT.exists():
        sys.exit(f"The benchmark needs real text, and {TEXT} is not there. Set BILMO_DATA to its folder.")
    main(Path(sys.argv[1]))

"""Time to quality on one Chinese novel: `python benchmarks/novel.py FOLDER`.

The recipe `novel` against the recipe of the old systems, with the same split, vocabulary and evaluation. The old recipe
is that of bilm-tf: Adagrad, an endless stream, 16 rows of 20 words, 8,192 sampled words, 512 cells, width 256, 2,048
filters over characters of width 128. Both run on bilmo's code, so only the recipes differ.

Minutes are converted to steps: the speed of each recipe, including its evaluations, is measured first, while nothing
else runs. Then each recipe is trained for the number of steps that fit into the minutes at that speed. The long part
can therefore run beside other work, and resumes in the same FOLDER. The best model so far counts, which is what the
folder of a run contains.
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
from bilmo.training import recipe as recipes
from bilmo.training.corpus import Corpus
from bilmo.training.events import Evaluation, Step
from bilmo.training.recipe import NetworkRecipe, Recipe
from bilmo.training.run import train
from text import DATA

HERE = Path(__file__).parent
TEXT = DATA / "text" / "hongloumeng-zh.txt.xz"
OLD: dict[str, Any] = {
    "cells": 512, "width": 256, "char_width": 128, "filters": NetworkRecipe().filters, "max_characters": 50,
    "activation": "relu", "highways": 1, "word_highways": 0,
    "context": "stream", "batch": 320, "window": 20, "softmax": "sampled", "samples": 8192, "optimizer": "adagrad",
    "rate": 0.2, "warm_up": 0.0, "decay": False, "clip": 10.0, "dropout": 0.1, "average": 0.0,
    "weight_decay": 0.0, "prior": "flat", "patience": 0,
    "epochs": 10.0,  # its learning rate does not fall, so it is stopped when its time is over
}  # fmt: skip
NEW: dict[str, Any] = {}
"""Unchanged; it stops by itself when held-out text no longer improves."""
OLD_MINUTES, NEW_MINUTES = (5, 10, 20, 40, 60), (5, 10, 20, 40)
EVALUATE_EVERY = {"old": 700, "new": 1170}
"""Steps between evaluations; for the new recipe, one per epoch."""
ROUNDS, MEASURED = 7, 40


def recipe_of(changes: dict[str, Any]) -> Recipe:
    """The recipe `novel` with some settings changed."""
    return recipes.read("novel", changes)


def steps_per_minute(seconds: list[float], evaluation: float, between: int) -> float:
    """From the seconds of single steps and of one evaluation, which happens once in `between` steps."""
    return 60 / (median(seconds) + evaluation / between)


def measured_speed(changes: dict[str, Any], between: int) -> tuple[float, float]:
    """Steps per minute with an evaluation every `between` steps, and steps per epoch."""
    with tempfile.TemporaryDirectory() as name:
        seconds, last, at = [], 0.0, 0.0
        recipe = recipe_of(changes | {"epochs": 1.0, "evaluate_every": MEASURED})
        for event in train([TEXT], Path(name) / "run", recipe):
            if isinstance(event, Step):
                seconds.append(event.seconds)
                last, at = event.done, time.perf_counter()
            elif isinstance(event, Evaluation):
                evaluation = time.perf_counter() - at
                return steps_per_minute(seconds[10:], evaluation, between), (len(seconds) - 1) / last
    raise RuntimeError("the text is too short to measure on")


def trained(folder: Path, changes: dict[str, Any], steps: int, per_epoch: float, between: int) -> dict[int, float]:
    """Train for `steps` steps; the held-out perplexity of each evaluation by its step."""
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
    """The best perplexity up to the first evaluation at or after a step."""
    last = min((number for number in found if number >= step), default=max(found))
    return min(perplexity for number, perplexity in found.items() if number <= last)


def of_known_words(folder: Path) -> float:
    """Perplexity of the best model of a run, over the held-out words that are in its vocabulary."""
    corpus = Corpus(folder / "training" / "corpus")
    held = corpus.text("held_out")
    sentences = np.split(np.array(corpus.words, dtype=object)[held.ids], held.ends[:-1])
    return score(load(folder), [sentence.tolist() for sentence in sentences]).known["mean"]


def main(folder: Path) -> None:
    """Measure the speeds once, train what is not trained yet, write the table."""
    folder.mkdir(parents=True, exist_ok=True)
    speeds = folder / "speeds.json"
    if not speeds.exists():
        rounds = [  # in turn, because the speed of a machine drifts
            (measured_speed(OLD, EVALUATE_EVERY["old"]), measured_speed(NEW, EVALUATE_EVERY["new"]))
            for _ in range(ROUNDS)
        ]
        found = [(median(each for each, _ in one), one[0][1]) for one in zip(*rounds, strict=True)]
        speeds.write_text(json.dumps(dict(zip(("old", "new"), found, strict=True))), encoding="utf-8")
    (old, old_epoch), (new, new_epoch) = json.loads(speeds.read_text(encoding="utf-8")).values()
    print(f"steps per minute: old {old:.1f}, new {new:.1f}", flush=True)
    ours = {}
    for minutes in NEW_MINUTES:
        steps = round(minutes * new)
        ours[minutes] = best(trained(folder / f"new-{minutes}", NEW, steps, new_epoch, EVALUATE_EVERY["new"]), steps)
    steps = math.ceil(OLD_MINUTES[-1] * old / EVALUATE_EVERY["old"]) * EVALUATE_EVERY["old"]  # up to an evaluation
    theirs = trained(folder / "old", OLD, steps, old_epoch, EVALUATE_EVERY["old"])
    known = {name: f"{of_known_words(folder / name):.1f}" for name in ("old", *(f"new-{m}" for m in ours))}
    rows = ["| minutes | old recipe | known words only | recipe `novel` | known words only |", "|---|---|---|---|---|"]
    for minutes in OLD_MINUTES:
        old_known = known["old"] if minutes == OLD_MINUTES[-1] else ""  # only the final model still exists
        mine = f"{ours[minutes]:.1f} | {known[f'new-{minutes}']}" if minutes in ours else " | "
        rows.append(f"| {minutes} | {best(theirs, round(minutes * old)):.1f} | {old_known} | {mine} |")
    table = "\n".join(rows)
    print(table)
    heading = (
        f"# Time to quality\n\n{date.today()}, made by `python benchmarks/novel.py FOLDER`, two cores: held-out "
        "perplexity (mean of both directions, full softmax, isolated sentences) of one classical Chinese novel. "
        f"Speeds measured alone on the machine: {old:.0f} steps of 320 words per minute with the old recipe, {new:.0f} "
        f"steps of {recipe_of(NEW).train.batch:,} with `novel`; minutes are steps at these speeds. The best perplexity "
        "up to the first evaluation after that time counts.\n\n"
    )
    (HERE / "results" / "novel.md").write_text(f"{heading}{table}\n", encoding="utf-8")


if __name__ == "__main__":
    if not TEXT.exists():
        sys.exit(f"The benchmark needs real text, and {TEXT} does not exist. Set BILMO_DATA to the data folder.")
    main(Path(sys.argv[1]))

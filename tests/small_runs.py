"""A training run that takes seconds: its text, its recipe, its loop, and what it wrote."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file

from bilmo.training import recipe as recipes
from bilmo.training.build import plan_model
from bilmo.training.corpus import Corpus, build
from bilmo.training.loop import Loop
from bilmo.training.model import WordArrays
from bilmo.training.recipe import Recipe

WORDS = ("the", "cat", "dog", "sat", "saw", "a", "mat", "on", "by", "字", ".")
RECIPE = """
[text]
lang = "spaces"
held_out = 0.1
[network]
char_width = 4
filters = [[1, 4], [2, 8]]
cells = 12
width = 8
[train]
batch = 60
epochs = 2
evaluate_every = 12
save_every = 5
rate = 0.01
dropout = 0.2
"""


def write_text(folder: Path, lines: int = 120, *, name: str = "text.txt", words: tuple[str, ...] = WORDS) -> Path:
    """Sentences of words drawn at random, and the recipe beside them."""
    draw = random.Random(1)
    rows = [" ".join(draw.choices(words, k=draw.randint(1, 12))) for _ in range(lines)]
    (folder / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return folder / name


def recipe(folder: Path, **changes: Any) -> Recipe:
    """The recipe of `write_text`, with single settings replaced."""
    return recipes.read(str(folder / "recipe.toml"), changes)


@contextlib.contextmanager
def threads(number: int) -> Iterator[None]:
    """Set the number of torch's threads within a `with` block."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def log(model: Path, event: str | None = None) -> list[dict[str, Any]]:
    """The lines of train.jsonl: all, or those of one kind. The incomplete last line of a killed run is left out."""
    lines = (model / "train.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines if line.endswith("}")]
    return [entry for entry in entries if event is None or entry["event"] == event]


def weights(model: Path) -> dict[str, np.ndarray]:
    """All tensors of a model folder."""
    return dict(load_file(model / "model.safetensors"))


def same_bits(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    """Whether two sets of tensors are the same to the bit."""
    return a.keys() == b.keys() and all(a[name].tobytes() == b[name].tobytes() for name in a)


def loop(folder: Path, **changes: Any) -> Loop:
    """The loop of a run on the text of `write_text`, without the files around it."""
    settings = recipe(folder, **changes)
    if (folder / "corpus").exists():
        found = Corpus(folder / "corpus")
    else:
        lines = (folder / "text.txt").read_text(encoding="utf-8").splitlines()
        found = build(lines, "spaces", folder / "corpus", held_out=settings.text.held_out, seed=settings.train.seed)
    plan = plan_model(settings.network, settings.text, found.words, found.counts)
    return Loop(settings.train, plan, found, WordArrays(found.words, plan.indexer()))

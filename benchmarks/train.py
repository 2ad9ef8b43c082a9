"""Training speed: one step of bilmo against AllenNLP's parts and against plain torch; same shapes and text, in one run.

A step is forward, backward, clipping and update. The text is cut into sentences of 19 words, so each direction makes 20
predictions per sentence, and all three systems learn from the same sentences and predict the same words. The character
ids of the other systems are computed in advance; a step of bilmo starts from word ids.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import peers
import torch

from bilmo.formats import open as layouts
from bilmo.ids.windows import TextSteps
from bilmo.store.bundle import Bundle
from bilmo.training import corpus as corpora
from bilmo.training.build import ModelPlan as Network
from bilmo.training.build import plan_model
from bilmo.training.corpus import Corpus
from bilmo.training.loop import Loop
from bilmo.training.model import WordArrays
from bilmo.training.recipe import NetworkRecipe, Recipe, TextRecipe, TrainRecipe
from embed import gemm_peak
from text import sentences

HERE = Path(__file__).parent
THREADS, STEPS, WARM_UP, SAMPLES = 2, 8, 3, 8192
ROUNDS = 3
"""The three systems take turns this many times; the median of each figure counts."""


@dataclass(frozen=True)
class Shape:
    """The shape of a network and of a step."""

    name: str
    cells: int
    width: int
    char_width: int
    words: int
    rows: int
    predicted: int = 20
    """Predictions of each direction per sentence, including its end."""


SHAPES = (Shape("small", 1024, 128, 16, 45_000, 64), Shape("novel", 512, 256, 128, 45_000, 16))


def recipe_of(shape: Shape) -> Recipe:
    """The recipe of the old systems for this shape."""
    return Recipe(
        text=TextRecipe(lang="spaces", vocab_size=shape.words),
        network=NetworkRecipe(cells=shape.cells, width=shape.width, char_width=shape.char_width, highways=1),
        train=TrainRecipe(
            context="sentences", batch=shape.rows * shape.predicted, softmax="sampled", samples=SAMPLES,
            optimizer="adagrad", rate=0.01, warm_up=0.0, decay=False, clip=10.0, dropout=0.0, device="cpu",
        ),
    )  # fmt: skip


def task_of(shape: Shape, network: Network, text: TextSteps, words: list[str]) -> dict[str, object]:
    """The steps for the other systems: words and target ids of each sentence, including both boundaries."""
    batches, targets = [], []
    for number in range(STEPS + WARM_UP):
        forward = text[number].forward
        rows = np.concatenate([forward.inputs, forward.targets[:, -1:]], axis=1)  # (B, T + 1)
        assert forward.inputs.shape == (shape.rows, shape.predicted)
        batches.append([[words[id] for id in row] for row in rows])
        targets.append(np.array(network.vocab.ids(words))[rows].tolist())
    recipe = recipe_of(shape).network
    sizes = {"cells": shape.cells, "width": shape.width, "words": shape.words, "samples": SAMPLES}
    how = {"char_width": recipe.char_width, "filters": recipe.filters, "threads": THREADS}
    return sizes | how | {"steps": STEPS, "warm_up": WARM_UP, "batches": batches, "targets": targets}


def peer(name: str, python: Path | str, model: Path, task: Path, folder: Path) -> dict[str, float]:
    out = folder / f"{name}.json"
    subprocess.run([python, HERE / "worker_train.py", name, model, task, out], check=True)
    found: dict[str, float] = json.loads(out.read_text(encoding="utf-8"))
    return found


def ours(shape: Shape, corpus: Path, folder: Path) -> dict[str, float]:
    """The same for bilmo, in a separate process, with the loop of `bilmo train`."""
    out = folder / "bilmo.json"
    subprocess.run([sys.executable, __file__, shape.name, corpus, folder / f"run-{shape.name}", out], check=True)
    found: dict[str, float] = json.loads(out.read_text(encoding="utf-8"))
    return found


def work(name: str, corpus_folder: str, folder: str, out: str) -> None:
    from worker_train import timed

    shape = next(shape for shape in SHAPES if shape.name == name)
    torch.set_num_threads(THREADS)
    corpus = Corpus(Path(corpus_folder))
    recipe = recipe_of(shape)
    network = plan_model(recipe.network, recipe.text, corpus.words, corpus.counts)
    loop = Loop(recipe.train, network, corpus, WordArrays(corpus.words, network.indexer()))
    text = loop.text(0)

    def step(number: int) -> None:
        loop.step(text[number], 0.0)

    found = timed(step, STEPS, WARM_UP)
    Path(out).write_text(json.dumps(found), encoding="utf-8")


def flops(shape: Shape, distinct: float) -> float:
    """Operations of a step, forward and backward: stacks, softmax, and the word encoder after its CNN."""
    positions = 2 * shape.rows * shape.predicted
    layer = 4 * shape.cells * 2 * shape.width + shape.cells * shape.width
    network = recipe_of(shape).network
    filters = sum(number for _, number in network.filters)
    encoder = network.highways * filters * 2 * filters + filters * shape.width
    return 6.0 * (positions * (2 * layer + SAMPLES * shape.width) + distinct * encoder)


def main() -> None:
    """Measure and write the table."""
    rows = [
        "| shape | sentences x words | AllenNLP, words/s | plain torch, words/s | bilmo, words/s | against AllenNLP "
        "| against torch | share of GEMM peak | memory, bilmo / AllenNLP / torch | memory per word of a step |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    peak = gemm_peak()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = [word for sentence in sentences(60_000) for word in sentence]
        each = SHAPES[0].predicted - 1
        lines = [" ".join(words[at : at + each]) for at in range(0, len(words) - each + 1, each)]
        corpus = corpora.build(lines, "spaces", folder / "corpus", held_out=0.01, seed=1)
        for shape in SHAPES:
            recipe = recipe_of(shape)
            network = plan_model(recipe.network, recipe.text, corpus.words, corpus.counts)
            assert len(network.vocab) == shape.words, f"the text has only {len(network.vocab):,} distinct words"
            weights = network.model(1).bilm.state_dict()
            layouts.write(Bundle(network.config, weights, layout="random"), folder / shape.name, "allennlp")
            loop = Loop(recipe.train, network, corpus, WordArrays(corpus.words, network.indexer()))
            task = folder / f"{shape.name}.json"
            text = loop.text(0)
            task.write_text(json.dumps(task_of(shape, network, text, corpus.words)), encoding="utf-8")
            distinct = np.mean([len(np.unique(text[number].forward.inputs)) for number in range(STEPS)])
            rounds = [
                {
                    "bilmo": ours(shape, folder / "corpus", folder),
                    "allennlp": peer("allennlp", peers.allennlp(), folder / shape.name, task, folder),
                    "torch": peer("torch", sys.executable, folder / shape.name, task, folder),
                }
                for _ in range(ROUNDS)
            ]
            found = {
                name: {what: float(np.median([one[name][what] for one in rounds])) for what in rounds[0][name]}
                for name in rounds[0]
            }
            times = {
                name: np.median([one[name]["seconds"] / one["bilmo"]["seconds"] for one in rounds]) for name in found
            }
            positions = shape.rows * shape.predicted
            speed = {name: positions / one["seconds"] for name, one in found.items()}
            share = flops(shape, float(distinct)) / found["bilmo"]["seconds"] / peak
            memory = " / ".join(f"{one['peak'] / 1e9:.1f} GB" for one in found.values())
            of_text = " / ".join(f"{max(0.0, one['step']) / 1e3 / positions:.0f} KB" for one in found.values())
            rows.append(
                f"| {shape.name} ({shape.cells}, {shape.width}) | {shape.rows} x {shape.predicted} "
                f"| {speed['allennlp']:,.0f} | {speed['torch']:,.0f} | {speed['bilmo']:,.0f} "
                f"| **{times['allennlp']:.1f}x** | **{times['torch']:.1f}x** "
                f"| {share:.0%} | {memory} | {of_text} |"
            )
            print(rows[-1], flush=True)
    table = "\n".join(rows)
    heading = (
        f"# Training speed\n\n{date.today()}, {THREADS} threads, torch {torch.__version__}, {SAMPLES} sampled words of "
        f"{SHAPES[0].words:,}, made by `make bench`. Words of text per second; both directions predict each word. "
        f"Medians of {ROUNDS} rounds in which the systems take turns. The share of GEMM peak counts the products of "
        "stacks, softmax, highways and projection of distinct words, without the convolutions, against a square matrix "
        "product of 2,048.\n"
    )
    (HERE / "results" / "train.md").write_text(f"{heading}\n{table}\n", encoding="utf-8")


if __name__ == "__main__":
    work(*sys.argv[1:]) if len(sys.argv) > 1 else main()

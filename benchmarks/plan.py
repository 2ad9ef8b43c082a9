"""The cost model of `bilmo plan`: fitted to measured training steps, checked on shapes and processes it has not seen.

    python benchmarks/plan.py              # fit and check with one process, and check with two under torchrun
    python benchmarks/plan.py --cpu-time   # CPU time instead of wall-clock time, for a machine that is not quiet

Every figure is that of one thread in each process. The fitted factors belong into `bilmo/training/plan/plan.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from bilmo.training import corpus as corpora
from bilmo.training.build import plan_model
from bilmo.training.corpus import Corpus
from bilmo.training.distributed.processes import joined
from bilmo.training.loop import Loop
from bilmo.training.model import WordArrays
from bilmo.training.plan import measure
from bilmo.training.plan.plan import Factors, Machine, all_reduce, computing
from bilmo.training.plan.work import work
from bilmo.training.recipe import NetworkRecipe, Recipe, TextRecipe, TrainRecipe

WORDS, LINES, LENGTH, STEPS, WARM_UP = 300_000, 6_000, 24, 6, 2
clock: Callable[[], float] = time.perf_counter


@dataclass(frozen=True)
class Shape:
    """The shape of a network and of a step."""

    name: str
    cells: int
    width: int
    vocab: int
    rows: int
    samples: int = 4096

    def recipe(self) -> Recipe:
        return Recipe(
            text=TextRecipe(lang="spaces", vocab_size=self.vocab),
            network=NetworkRecipe(cells=self.cells, width=self.width),
            train=TrainRecipe(
                context="stream", window=20, batch=20 * self.rows, softmax="sampled", samples=self.samples,
            ),
        )  # fmt: skip


FITTED = (
    Shape("narrow", 512, 128, 30_000, 32),
    Shape("wide", 1024, 256, 30_000, 32),
    Shape("many rows", 512, 128, 30_000, 96),
    Shape("many words", 128, 256, 300_000, 4, 256),
    Shape("few words", 512, 128, 12_000, 32, 1024),
)
UNSEEN = (Shape("novel", 512, 256, 45_000, 48, 8192), Shape("small", 1024, 128, 45_000, 64, 8192))


def text(folder: Path) -> Corpus:
    """Sentences of words drawn by Zipf's law."""
    if not folder.exists():
        random = np.random.default_rng(1)
        share = 1 / (np.arange(WORDS) + 2.7)
        names = np.array([np.base_repr(k * 7919 % 2176782336, 36).lower() for k in range(WORDS)])
        drawn = names[random.choice(WORDS, (LINES, LENGTH), p=share / share.sum())]
        lines = [
            *(" ".join(row) for row in drawn),
            *(" ".join(part) for part in np.array_split(names, WORDS // LENGTH)),
        ]
        corpora.build(lines, "spaces", folder, held_out=0.02, seed=1)
    return Corpus(folder)


def seconds(shape: Shape, corpus: Corpus) -> float:
    """The median time of a step, on as many processes as there are."""
    recipe = shape.recipe()
    plan = plan_model(recipe.network, recipe.text, corpus.words, corpus.counts)
    with joined() as processes:
        loop = Loop(recipe.train, plan, corpus, WordArrays(corpus.words, plan.indexer()), processes)
        steps, found = loop.text(0), []
        for number in range(STEPS + WARM_UP):
            began = clock()
            loop.step(steps[number % len(steps)], 0.5)
            found.append(clock() - began)
    return float(np.median(found[WARM_UP:]))


def rates() -> Machine:
    measure.clock = clock
    device = torch.device("cpu")
    return Machine(products=measure.product_rate(device), memory=measure.memory_rate(device))


def fitted(machine: Machine, measured: dict[str, float]) -> Factors:
    """The factors of least relative error."""
    ones = (Factors(1, 0), Factors(0, 1))
    rows = [
        [computing(work(shape.recipe(), shape.vocab), machine, one) / measured[shape.name] for one in ones]
        for shape in FITTED
    ]
    found, *_ = np.linalg.lstsq(np.array(rows), np.ones(len(rows)), rcond=None)
    return Factors(*found.tolist())


def connection(size: int = 1 << 22, rounds: int = 20) -> tuple[float, float]:
    """Bytes per second and latency of a sum over two processes."""
    import torch.distributed as dist

    with joined():
        found = []
        for numbers in (1, size):
            values = torch.zeros(numbers)
            times = []
            for _ in range(rounds):
                began = time.perf_counter()
                dist.all_reduce(values)
                times.append(time.perf_counter() - began)
            found.append(float(np.median(times[2:])))
    return 4 * size / (found[1] - found[0]), found[0] / 2


def member(folder: str, name: str) -> None:
    """One of two processes."""
    torch.set_num_threads(1)
    shape = next((shape for shape in UNSEEN if shape.name == name), None)
    found: object = connection() if shape is None else seconds(shape, Corpus(Path(folder)))
    if os.environ["RANK"] == "0":
        Path(folder).with_suffix(".json").write_text(json.dumps(found), encoding="utf-8")


def two(folder: Path, name: str) -> object:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    subprocess.run([*torchrun, __file__, str(folder), name], check=True)
    return json.loads(folder.with_suffix(".json").read_text(encoding="utf-8"))


def main() -> None:
    global clock
    if "--cpu-time" in sys.argv:
        clock = time.process_time
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "corpus")
        corpus = text(folder)
        machine = rates()
        print(f"products {machine.products / 1e9:.1f} GFLOP/s, memory {machine.memory / 1e9:.1f} GB/s")
        measured = {shape.name: seconds(shape, corpus) for shape in FITTED}
        factors = fitted(machine, measured)
        print(f"FACTORS = {factors}\n\n| shape | processes | measured (s) | model (s) | error |\n|---|---|---|---|---|")
        for shape in (*FITTED, *UNSEEN):
            found = measured.get(shape.name) or seconds(shape, corpus)
            said = computing(work(shape.recipe(), shape.vocab), machine, factors)
            seen = "fitted" if shape in FITTED else "not fitted"
            print(f"| {shape.name}, {seen} | 1 | {found:.3f} | {said:.3f} | {said / found - 1:+.0%} |", flush=True)
        if "--cpu-time" in sys.argv:
            return
        within, latency = (float(value) for value in two(folder, "connection"))  # type: ignore[attr-defined]
        print(f"\nconnection: {within / 1e9:.2f} GB/s, {1e6 * latency:.0f} us\n")
        machine = Machine(machine.products, machine.memory, within=within, latency=latency, processes=2)
        for shape in UNSEEN:
            found = float(two(folder, shape.name))  # type: ignore[arg-type]
            share = work(shape.recipe(), shape.vocab, 2)
            said = computing(share, machine, factors) + all_reduce(share.summed_bytes, share.messages, machine, 2)
            print(f"| {shape.name}, not fitted | 2 | {found:.3f} | {said:.3f} | {said / found - 1:+.0%} |", flush=True)


if __name__ == "__main__":
    if "RANK" in os.environ:
        member(*sys.argv[1:3])
    else:
        main()

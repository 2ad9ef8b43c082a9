"""Embedding speed: bilmo against AllenNLP's Elmo and simple_elmo; same weights, sentences and threads, in one run.

Every timed sentence is new to all systems. The vectors are compared, because a speed ratio is meaningless if the
results differ.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import date
from itertools import chain
from pathlib import Path

import numpy as np
import peers
import torch

import bilmo
from bilmo.formats import open as layouts
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.store.bundle import Bundle
from text import sentences

HERE = Path(__file__).parent
THREADS, WARM_UP, COMPARED = 2, 2000, 50


@dataclass(frozen=True)
class Shape:
    """A published shape, and the number of sentences that are timed in each of two rounds."""

    name: str
    cells: int
    width: int
    highways: int
    timed: int

    @property
    def flops(self) -> float:
        """Floating-point operations per word, in the stacks of both directions."""
        return 2.0 * 2 * 2 * (4 * self.cells * 2 * self.width + self.cells * self.width)


SHAPES = (Shape("small", 1024, 128, 1, 300), Shape("original", 4096, 512, 2, 100))
Found = dict[str, np.ndarray]


def write_weights(shape: Shape, folder: Path) -> None:
    """Write random weights in the old layout, from a fixed seed."""
    torch.manual_seed(1)
    config = bilmo.BiLMConfig(
        words=WordsConfig(chars=CharsConfig(highways=shape.highways)),
        cell=CellConfig(cells=shape.cells),
        width=shape.width,
    )
    layouts.write(Bundle(config, bilmo.BiLM(config).state_dict(), layout="random"), folder, "allennlp")


def measure(python: Path | str, worker: str, model: Path, task: Path, *more: str) -> Found:
    out = task.parent / "out.npz"
    subprocess.run([python, HERE / worker, model, task, out, *more], check=True)
    with np.load(out) as found:
        return {name: found[name] for name in found.files}


def apart(a: Found, b: Found, kind: str) -> float:
    """The largest difference between vectors that both systems computed."""
    names = [name for name in a if name.startswith(kind) and name in b]
    assert names, f"no vectors {kind} to compare"
    return max(float(np.abs(a[name] - b[name]).max()) for name in names)


def compare(shape: Shape, folder: Path, text: list[list[str]], batch: int, peak: float) -> str:
    """One row of the table."""
    model = folder / shape.name
    timed = text[WARM_UP : WARM_UP + 2 * shape.timed]
    parts = [timed[: shape.timed], timed[shape.timed :]]
    task = folder / "task.json"
    work = {"warm_up": text[:WARM_UP], "parts": parts, "threads": THREADS, "batch": batch, "compared": COMPARED}
    task.write_text(json.dumps(work), encoding="utf-8")
    allennlp = measure(peers.allennlp(), "worker_allennlp.py", model, task)
    simple = measure(peers.simple_elmo(), "worker_simple_elmo.py", model, task)
    ours = measure(sys.executable, "worker_bilmo.py", model, task)
    int8 = measure(sys.executable, "worker_bilmo.py", model, task, "int8")
    differences = apart(ours, allennlp, "v"), apart(ours, simple, "first")
    assert max(differences) < 1e-4, f"{shape.name}: vectors differ by {differences}"
    words = np.array([sum(map(len, part)) for part in parts])
    rates = [float((words / found["seconds"]).max()) for found in (allennlp, simple, ours, int8)]
    share = shape.flops * words[-1] / float(ours["recurrent"]) / peak
    how = "one at a time" if batch == 1 else f"peers in batches of {batch}"
    return (
        f"| {shape.name} | {how} | "
        + " | ".join(f"{rate:,.0f}" for rate in rates)
        + f" | **{rates[2] / rates[0]:.1f}x**"
        f" | {rates[2] / rates[1]:.1f}x | {rates[3] / rates[0]:.1f}x | {share:.0%} | {ours['memory'] / 1e6:,.0f} MB"
        f" | {max(differences):.1e} |"
    )


def gemm_peak() -> float:
    """The highest speed of a large matrix product on this machine, in operations per second."""
    torch.set_num_threads(THREADS)
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    found = []
    for _ in range(8):
        began = time.perf_counter()
        a @ b
        found.append(2 * 2048**3 / (time.perf_counter() - began))
    return max(found)


def growth(folder: Path, text: list[list[str]]) -> list[str]:
    """Words per second as the text grows, and as sentences grow: the cost of a word should stay the same."""
    torch.set_num_threads(THREADS)
    elmo = bilmo.load(folder / "small", start="zero")
    elmo.layers(text)  # fills the word cache
    rows = []
    for number in (200, 800, len(text)):
        rows.append((f"{number:,} sentences", text[:number]))
    words = list(chain.from_iterable(text))[:40_000]
    for length in (10, 50, 250, 1000, 5000):
        pieces = [words[at : at + length] for at in range(0, len(words), length)]
        rows.append((f"{len(pieces):,} sentences of {length:,} words", pieces))
    found = []
    for name, some in rows:
        began = time.perf_counter()
        elmo.layers(some)
        found.append(f"| {name} | {sum(map(len, some)) / (time.perf_counter() - began):,.0f} |")
        print(found[-1], flush=True)
    return found


def main() -> None:
    """Measure and write the tables."""
    text = sentences(WARM_UP + 2 * max(shape.timed for shape in SHAPES))
    rows = [
        "| shape | sentences | AllenNLP, words/s | simple_elmo | bilmo | bilmo int8 | against AllenNLP "
        "| against simple_elmo | int8 against AllenNLP | share of GEMM peak | memory of bilmo | largest difference |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    peak = gemm_peak()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for shape in SHAPES:
            write_weights(shape, folder / shape.name)
            for batch in (32, 1):
                rows.append(compare(shape, folder, text, batch, peak))
                print(rows[-1], flush=True)
        grown = growth(folder, text)
    table = "\n".join(rows)
    heading = (
        f"# Embedding speed\n\n{date.today()}, {THREADS} threads, torch {torch.__version__}, made by `make bench`. "
        "Words per second, all layers. New words are encoded within the measured time; the word cache was filled with "
        "2,000 other sentences. Share of GEMM peak: the recurrent part against a square matrix product of 2,048.\n"
    )
    cost = "| text, small shape, every word cached | words/s |\n|---|---|\n" + "\n".join(grown)
    (HERE / "results" / "embed.md").write_text(f"{heading}\n{table}\n\n{cost}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

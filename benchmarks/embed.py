"""Embedding speed: bilmo against AllenNLP's Elmo and simple_elmo, same weights, sentences and threads, in one run.

Every timed sentence is new to all. The vectors are compared: a ratio over different results is none.
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
    """A published shape, and how many sentences are timed with it: each of two rounds."""

    name: str
    cells: int
    width: int
    highways: int
    timed: int

    @property
    def flops(self) -> float:
        """Of the stacks of both directions, a word."""
        return 2.0 * 2 * 2 * (4 * self.cells * 2 * self.width + self.cells * self.width)


SHAPES = (Shape("small", 1024, 128, 1, 300), Shape("original", 4096, 512, 2, 100))
Found = dict[str, np.ndarray]


def write_weights(shape: Shape, folder: Path) -> None:
    """Random weights in the old layout, from a seed."""
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
    """The largest difference of the vectors that both have."""
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
    """What this machine multiplies at best, flops a second."""
    torch.set_num_threads(THREADS)
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    found = []
    for _ in range(8):
        began = time.perf_counter()
        a @ b
        found.append(2 * 2048**3 / (time.perf_counter() - began))
    return max(found)


def growth(folder: Path, text: list[list[str]]) -> list[str]:
    """Words a second as the corpus grows, and as sentences grow: the cost of a word should stay what it is."""
    torch.set_num_threads(THREADS)
    elmo = bilmo.load(folder / "small", start="zero")
    elmo.layers(text)  # so that every word is known, whatever is embedded next
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
    """Measure, print, save."""
    text = sentences(WARM_UP + 2 * max(shape.timed for shape in SHAPES))
    rows = [
        "| shape | sentences | AllenNLP, words/s | simple_elmo | bilmo | bilmo int8 | over AllenNLP | over simple_elmo "
        "| int8 over AllenNLP | share of GEMM peak | memory of bilmo | largest difference |",
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
        "Words a second, all layers; every word's first sight is paid for, with a cache warmed on 2,000 other "
        "sentences. Share of GEMM peak: the recurrent part against a square product of 2,048.\n"
    )
    cost = "| text, small shape, every word known | words/s |\n|---|---|\n" + "\n".join(grown)
    (HERE / "results" / "embed.md").write_text(f"{heading}\n{table}\n\n{cost}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

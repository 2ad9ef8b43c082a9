"""Embedding speed: bilmo against AllenNLP's Elmo, the same weights, sentences and threads, in one run.

Every timed sentence is new to both. The vectors of both are compared: a ratio over different results is none.
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

import bilmo
from bilmo.legacy import layouts
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


SHAPES = (Shape("small", 1024, 128, 1, 300), Shape("original", 4096, 512, 2, 100))


def write_weights(shape: Shape, folder: Path) -> None:
    """Random weights in the old layout, from a seed."""
    torch.manual_seed(1)
    config = bilmo.BiLMConfig(
        words=WordsConfig(chars=CharsConfig(highways=shape.highways)),
        cell=CellConfig(cells=shape.cells),
        width=shape.width,
    )
    layouts.write(Bundle(config, bilmo.BiLM(config).state_dict(), layout="random"), folder, "allennlp")


def measure(python: Path | str, worker: str, model: Path, task: Path, folder: Path) -> dict[str, np.ndarray]:
    out = folder / f"{worker}.npz"
    subprocess.run([python, HERE / worker, model, task, out], check=True)
    with np.load(out) as found:
        return {name: found[name] for name in found.files}


def compare(shape: Shape, folder: Path, text: list[list[str]], batch: int) -> str:
    """One row of the table."""
    model = folder / shape.name
    timed = text[WARM_UP : WARM_UP + 2 * shape.timed]
    parts = [timed[: shape.timed], timed[shape.timed :]]
    task = folder / "task.json"
    work = {"warm_up": text[:WARM_UP], "parts": parts, "threads": THREADS, "batch": batch, "compared": COMPARED}
    task.write_text(json.dumps(work), encoding="utf-8")
    theirs = measure(peers.allennlp(), "worker_allennlp.py", model, task, folder)
    ours = measure(sys.executable, "worker_bilmo.py", model, task, folder)
    apart = max(float(np.abs(ours[f"v{k}"] - theirs[f"v{k}"]).max()) for k in range(COMPARED))
    assert apart < 1e-4, f"{shape.name}: vectors differ by {apart}"
    words = np.array([sum(map(len, part)) for part in parts])
    rate = {"bilmo": (words / ours["seconds"]).max(), "allennlp": (words / theirs["seconds"]).max()}
    how = "one at a time" if batch == 1 else f"AllenNLP in batches of {batch}"
    return (
        f"| {shape.name} | {how} | {rate['allennlp']:,.0f} | {rate['bilmo']:,.0f} "
        f"| **{rate['bilmo'] / rate['allennlp']:.1f}x** | {apart:.1e} |"
    )


def main() -> None:
    """Measure, print, save."""
    text = sentences(WARM_UP + 2 * max(shape.timed for shape in SHAPES))
    rows = [
        "| shape | sentences | AllenNLP, words/s | bilmo, words/s | ratio | largest difference |",
        "|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for shape in SHAPES:
            write_weights(shape, folder / shape.name)
            for batch in (32, 1):
                rows.append(compare(shape, folder, text, batch))
                print(rows[-1], flush=True)
    table = "\n".join(rows)
    print(f"\n{table}")
    heading = (
        f"# Embedding speed\n\n{date.today()}, {THREADS} threads, torch {torch.__version__}, made by `make bench`\n"
    )
    (HERE / "results" / "embed.md").write_text(f"{heading}\n{table}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Speed of an exported ONNX file against bilmo itself: the same model, sentences and number of threads, in one run.

    python benchmarks/exported.py [MODEL ...]

Each system gets every sentence once in a warm-up, then the same sentences in another order; the best of three rounds
counts. bilmo keeps the vectors of words between calls, so it is also timed with an empty cache.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import torch

import bilmo
from bilmo.plug import onnx
from text import sentences

THREADS, SENTENCES, ROUNDS = 2, 300, 3


def rate(embed: Callable[[list[list[str]]], object], text: list[list[str]]) -> float:
    """Words per second in the best round."""
    seconds = []
    for number in range(ROUNDS):
        random.Random(number).shuffle(text)
        began = time.perf_counter()
        embed(text)
        seconds.append(time.perf_counter() - began)
    return sum(map(len, text)) / min(seconds)


def one_by_one(embed: Callable[[list[list[str]]], object]) -> Callable[[list[list[str]]], object]:
    """The same, one sentence at a time."""
    return lambda text: [embed([sentence]) for sentence in text]


def compare(model: str, text: list[list[str]], folder: Path) -> list[str]:
    """The rows of one model."""
    elmo = bilmo.load(model)
    files = {name: folder / f"{Path(model).name}-{name}.onnx" for name in ("float32", "int8")}
    for name, file in files.items():
        onnx.export(elmo, file, precision=name)  # type: ignore[arg-type]
    loaded = {name: onnx.load(file, threads=THREADS) for name, file in files.items()}
    apart = max(
        float(np.abs(a - b).max()) for a, b in zip(loaded["float32"].layers(text), elmo.layers(text), strict=True)
    )
    assert apart < 1e-4, f"{model}: vectors differ by {apart}"
    rows = []
    for name, how in (("batches", lambda embed: embed), ("one at a time", one_by_one)):
        rates = [
            rate(how(lambda some: bilmo.load(model).layers(some)), text) if name == "batches" else float("nan"),
            rate(how(elmo.layers), text),
            *(rate(how(one.layers), text) for one in loaded.values()),
        ]
        shown = " | ".join("" if np.isnan(one) else f"{one:,.0f}" for one in rates)
        sizes = " | ".join(f"{file.stat().st_size / 1e6:,.1f} MB" for file in files.values())
        rows.append(f"| {model} | {name} | {shown} | {rates[2] / rates[1]:.2f}x | {sizes} | {apart:.1e} |")
        print(rows[-1], flush=True)
    return rows


def main(*models: str) -> None:
    """Measure and write the table."""
    torch.set_num_threads(THREADS)
    text = sentences(SENTENCES)
    rows = [
        "| model | sentences | bilmo, loaded anew, words/s | bilmo | ONNX | ONNX int8 | ONNX against bilmo | file "
        "| int8 file | largest difference |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as name:
        for model in models or ("en",):
            rows += compare(model, text, Path(name))
    table = Path(__file__).parent / "results" / "exported.md"
    head = (
        f"# ONNX\n\n{date.today()}, {THREADS} threads, torch {torch.__version__}. `python benchmarks/exported.py`\n\n"
    )
    table.write_text(head + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

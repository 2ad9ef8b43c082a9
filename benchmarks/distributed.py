"""Training on two processes of one thread each against one process of two threads; bytes sent against the minimum.

    python benchmarks/distributed.py

Both in one run, in turns, at the shapes "novel" and "small" of `benchmarks/train.py`. The minimum of bytes is that of
the gradients that are not 0, each once.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from plan import UNSEEN, Shape, text

from bilmo.training.build import plan_model
from bilmo.training.corpus import Corpus
from bilmo.training.distributed.processes import joined
from bilmo.training.loop import Loop
from bilmo.training.model import WordArrays

STEPS, WARM_UP, ROUNDS = 8, 3, 3
PROCESSES = {"1 process, 2 threads": (1, 2), "2 processes, 1 thread each": (2, 1), "1 process, 1 thread": (1, 1)}


def work(name: str, corpus_folder: str, out: str, threads: str) -> None:
    """The steps of one process."""
    torch.set_num_threads(int(threads))
    shape = next(shape for shape in UNSEEN if shape.name == name)
    corpus, recipe = Corpus(Path(corpus_folder)), shape.recipe()
    plan = plan_model(recipe.network, recipe.text, corpus.words, corpus.counts)
    with joined() as processes:
        loop = Loop(recipe.train, plan, corpus, WordArrays(corpus.words, plan.indexer()), processes)
        steps = loop.text(0)
        events = [loop.step(steps[number % len(steps)], 0.5) for number in range(STEPS + WARM_UP)]
        least = 4 * sum(int((p.grad != 0).sum()) for p in loop.model.parameters() if p.grad is not None)
        rate = statistics.median(event.words / event.seconds for event in events[WARM_UP:])
        if processes.first:
            found = {"rate": rate, "bytes": loop.summed_bytes, "least": least}
            Path(out).write_text(json.dumps(found), encoding="utf-8")


def run(shape: Shape, corpus: Path, out: Path, processes: int, threads: int) -> dict[str, float]:
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command = [sys.executable, *(torchrun if processes > 1 else []), __file__]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    subprocess.run([*command, shape.name, str(corpus), str(out), str(threads)], check=True, env=environment)
    found: dict[str, float] = json.loads(out.read_text(encoding="utf-8"))
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        corpus, out = Path(name, "corpus"), Path(name, "found.json")
        text(corpus)
        print("| shape | processes | words/s | of 2 threads | MB sent in a step | least |\n|---|---|---|---|---|---|")
        for shape in UNSEEN:
            rounds = [{way: run(shape, corpus, out, *how) for way, how in PROCESSES.items()} for _ in range(ROUNDS)]
            whole = statistics.median(found["1 process, 2 threads"]["rate"] for found in rounds)
            for way in PROCESSES:
                rate = statistics.median(found[way]["rate"] for found in rounds)
                sent, least = (rounds[0][way][key] / 1e6 for key in ("bytes", "least"))
                print(
                    f"| {shape.name} | {way} | {rate:,.0f} | {rate / whole:.2f}x | {sent:.1f} | {least:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    work(*sys.argv[1:]) if len(sys.argv) > 1 else main()

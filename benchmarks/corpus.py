"""Peak memory and speed of making a corpus, with and without a bound on distinct words.

    python benchmarks/corpus.py 200e6 --max-words 1000000 --workers 2

The text is drawn by a Zipf law whose tail never ends, so the number of distinct words grows with the text. It is made
while it is read; only the corpus is on the disk, and it is removed. Needs 8 bytes of disk for each word.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bilmo.training.corpus import build
from bilmo.training.distributed.pieces import processes

LENGTH, BLOCK = 25, 4096


def lines(words: int) -> Iterator[str]:
    random = np.random.default_rng(1)
    for _ in range(0, words, LENGTH * BLOCK):
        drawn = random.zipf(1.25, (BLOCK, LENGTH)) % (1 << 40)
        yield from (" ".join(map(str, row)) for row in drawn.tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", type=float)
    parser.add_argument("--max-words", type=int)
    parser.add_argument("--workers", type=int, default=1, help="processes that split the text")
    given = parser.parse_args()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        folder = Path(name, "corpus")
        text, mapped = lines(int(given.words)), processes(given.workers)
        corpus = build(text, "spaces", folder, held_out=0.001, seed=1, max_words=given.max_words, mapped=mapped)
        seconds = time.perf_counter() - began
        disk = sum(file.stat().st_size for file in folder.iterdir())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    facts = corpus.facts
    print(f"{sum(facts.tokens.values()):,} words, {facts.words:,} distinct words kept (least count {facts.least})")
    print(f"{seconds:.0f} s; {disk / 1e6:,.0f} MB on disk")
    print(f"memory: {before / 1e3:,.0f} MB before, {peak / 1e3:,.0f} MB at most")
    if given.workers > 1:
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        print(f"each worker: at most {largest / 1e3:,.0f} MB, much of it shared with the first process")


if __name__ == "__main__":
    main()

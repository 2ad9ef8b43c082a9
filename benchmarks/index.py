"""An index of many uses against brute force: `python benchmarks/index.py MODEL [--uses 2000000]`.

A text of Wikipedia is indexed by `bilmo index`. Words in other sentences are then searched: recall at 10 is the share
of the ten nearest uses, found by comparing the stored vectors of all uses, that the index finds too; a use that is as
near as the tenth counts as one of them. Time is that of a search alone, on one core, after a first round that has
read the index from the disk. `bilmo embed` of the same text gives the speed to compare with.

The heading names the load of the machine before the run: with other work on it, recall and memory are valid, times are
not. The table goes to results/index.md unless the number of uses is another one.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import bilmo
from bilmo.sense.places import is_word
from bilmo.sense.segment import VECTORS, kinds, unpacked
from bilmo.text.brackets import marked
from text import wikipedia, write_text

RESULTS = Path(__file__).parent / "results"
USES, QUERIES, NEAR, BLOCK = 2_000_000, 200, 10, 1 << 15
TOKENS_PER_USE = 1.16
"""About one token in seven is punctuation."""
Vectors = NDArray[np.float32]


def measured(*command: str | Path) -> tuple[float, float]:
    """Seconds and peak memory in megabytes of a command."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "bilmo", *map(str, command)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, f"{command} failed"
    return time.perf_counter() - began, 1024 * used.ru_maxrss / 1e6


def asked(text: list[list[str]]) -> list[str]:
    """One word of each sentence in square brackets."""
    draw = random.Random(1)
    found = []
    for sentence in text:
        words = [k for k, token in enumerate(sentence) if is_word(token)]
        if words and not {"[", "]"} & set("".join(sentence)):
            k = draw.choice(words)
            found.append(" ".join([*sentence[:k], f"[{sentence[k]}]", *sentence[k + 1 :]]))
    return found[:QUERIES]


def tenth_best(index: bilmo.Index, asked: Vectors) -> Vectors:
    """The cosine of the tenth nearest use, for each vector, by brute force."""
    config, best = index.config, np.full((len(asked), NEAR), -2, dtype=np.float32)
    kind = kinds(config.width, config.stored)[VECTORS].base
    (path,) = index.folder.glob(f"*/{VECTORS}")
    values = np.memmap(path, dtype=kind, mode="r").reshape(-1, config.width)
    for begin in range(0, len(values), BLOCK):
        cosines = asked @ unpacked(values[begin : begin + BLOCK]).T  # (queries, BLOCK)
        best = np.sort(np.concatenate([best, cosines], axis=1), axis=1)[:, -NEAR:]
    return best[:, 0]


def main(arguments: list[str] | None = None) -> None:
    """Build, search, compare, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--uses", type=int, default=USES)
    parser.add_argument("--dtype", default="float16")
    given = parser.parse_args(arguments)
    load = os.getloadavg()[0]
    rows = ["| | |", "|---|---|"]

    def report(what: str, value: str) -> None:
        rows.append(f"| {what} | {value} |")
        print(rows[-1], flush=True)

    text = wikipedia()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokens = round(given.uses * TOKENS_PER_USE)
        write_text(folder / "text.txt", text, tokens)
        spaces = ("--lang", "spaces")
        embed = ("embed", given.model, folder / "text.txt", "-o", folder / "x.npy", "--mix", "mean", *spaces)
        seconds, _ = measured(*embed, "--dtype", "float16")
        (folder / "x.npy").unlink()
        speed = tokens / seconds
        report("`bilmo embed`", f"{speed:,.0f} words/s")
        built = ("index", given.model, folder / "text.txt", "-o", folder / "uses", "--dtype", given.dtype, *spaces)
        seconds, memory = measured(*built)
        report("`bilmo index`", f"{tokens / seconds:,.0f} words/s, {tokens / seconds / speed:.2f} of the speed")
        report("peak memory while building", f"{memory:,.0f} MB")
        size = sum(path.stat().st_size for path in (folder / "uses").rglob("*") if path.is_file())
        began = time.perf_counter()
        index = bilmo.Index.open(folder / "uses")
        report("opening", f"{time.perf_counter() - began:.2f} s")
        report("uses; size on disk", f"{len(index):,}; {size / 1e6:,.0f} MB")
        torch.set_num_threads(1)
        _one_thread()
        elmo = bilmo.load(given.model, lang="spaces")
        space = index._space
        vectors = np.stack(
            [space.vector(elmo, *marked(elmo.split, one)) for one in asked([next(text) for _ in range(400)])]
        )
        found = [index.nearest(vector, NEAR) for vector in vectors]  # reads what is not in memory yet
        began = time.perf_counter()
        for vector in vectors:
            index.nearest(vector, NEAR)
        report("one search, on one core", f"{1000 * (time.perf_counter() - began) / len(vectors):.2f} ms")
        bounds = tenth_best(index, vectors)
        hits = [sum(use.cosine >= bound - 1e-5 for use in near) for near, bound in zip(found, bounds, strict=True)]
        report(f"recall at {NEAR}, {len(vectors)} searches", f"{sum(hits) / NEAR / len(vectors):.4f}")
    command = f"python benchmarks/index.py {given.model}"
    heading = (
        f"# Index of uses\n\n{date.today()}, made by `{command}`; {os.cpu_count()} cores, of which other programs kept "
        f"{load:.1f} busy before the run. Goals: recall 0.95, 5 ms, half the speed of `bilmo embed`.\n\n"
    )
    if given.uses == USES:
        (RESULTS / "index.md").write_text(heading + "\n".join(rows) + "\n", encoding="utf-8")


def _one_thread() -> None:
    import faiss

    faiss.omp_set_num_threads(1)


if __name__ == "__main__":
    main()

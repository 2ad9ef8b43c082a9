"""Embedding with several processes: speed against threads of one process, and memory at the original shape.

Speed: 2 workers of one thread, 1 process of two threads, 1 process of one thread; alternating rounds on the same text,
whole commands, minus the time that the same command takes for one line (loading the model, starting processes). The
text fills whole parts, the same number for each worker: otherwise one worker waits for the other at the end, at most
for the time of one part, which says nothing about speed.
Memory: the sum of the proportional set sizes (PSS) of all processes of a run, its largest value.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

from bilmo.embed import job
from bilmo.embed.texts import token_count
from embed import SHAPES, Shape, write_weights
from text import wikipedia

HERE = Path(__file__).parent
WAYS = {
    "1 process, 1 thread": ("--threads", "1"),
    "1 process, 2 threads": ("--threads", "2"),
    "2 workers, 1 thread each": ("--workers", "2"),
}
MEMORY = {"1 process, 2 threads": ("--threads", "2"), "4 workers": ("--workers", "4")}
PARTS = {"small": 8, "original": 4}
"""Parts of the text, for each shape."""
EVERY = 0.2
"""Seconds between two measurements of memory."""


def command(model: Path, text: Path, out: Path, *more: str) -> list[str]:
    """A command that embeds a text from the start."""
    settings = ("--lang", "spaces", "--mix", "all", "--dtype", "float16", "--overwrite", *more)
    return [sys.executable, "-m", "bilmo", "embed", str(model), str(text), "-o", str(out), *settings]


def write_parts(path: Path, shape: Shape, share: float) -> int:
    """Write a text that almost fills its parts; returns the number of its words."""
    most = min(job.PART_TOKENS, job.PART_BYTES // (3 * 2 * shape.width * 2))
    left, words = share * PARTS[shape.name] * (most - 200), 0  # a sentence that does not fit begins the next part
    with path.open("w", encoding="utf-8") as file:
        for sentence in wikipedia():
            if (left := left - token_count([sentence])) < 0:
                break
            file.write(" ".join(sentence) + "\n")
            words += len(sentence)
    return words


def seconds(model: Path, text: Path, out: Path, *more: str) -> float:
    """What a command takes."""
    began = time.perf_counter()
    subprocess.run(command(model, text, out, *more), check=True, capture_output=True)
    return time.perf_counter() - began


def memory(model: Path, text: Path, out: Path, *more: str) -> float:
    """The largest sum of proportional set sizes of a command and its workers, in megabytes."""
    process = subprocess.Popen(command(model, text, out, *more), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    largest = 0.0
    while process.poll() is None:
        time.sleep(EVERY)
        largest = max(largest, sum(map(proportional, family(process.pid))))
    assert process.returncode == 0, f"{more} failed"
    return largest


def family(process: int) -> list[int]:
    """A process and the processes that it started."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:  # it has just ended
        return []
    return [process, *(one for child in children for one in family(int(child)))]


def proportional(process: int) -> float:
    """Memory of a process in megabytes; what several processes share is divided among them."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6


def main() -> None:
    """Measure and write the tables."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--share", type=float, default=1.0, help="of the text; less only to try the benchmark")
    chosen = options.parse_args()
    rows = ["| shape | how | words per second | against 2 threads | against 1 thread |", "|---|---|---|---|---|"]
    used = ["| how | memory, all processes | against one process |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        line = folder / "line.txt"
        line.write_text("The cat sat on the mat .\n")
        for shape in SHAPES:
            model, text, out = folder / shape.name, folder / "text.txt", folder / "out.npy"
            write_weights(shape, model)
            words = write_parts(text, shape, chosen.share)
            times: dict[str, list[float]] = {way: [] for way in WAYS}
            for _ in range(chosen.rounds):
                for way, more in WAYS.items():
                    times[way].append(seconds(model, text, out, *more) - seconds(model, line, out, *more))
            speeds = {way: words / statistics.median(some) for way, some in times.items()}
            one, two, _ = speeds.values()
            for way, speed in speeds.items():
                rows.append(f"| {shape.name} | {way} | {speed:,.0f} | {speed / two:.2f} | {speed / one:.2f} |")
                print(rows[-1], flush=True)
        sizes = {way: memory(model, text, out, *more) for way, more in MEMORY.items()}
        first = next(iter(sizes.values()))
        for way, size in sizes.items():
            used.append(f"| {way} | {size:,.0f} MB | {size / first:.2f} |")
            print(used[-1], flush=True)
    made = f"{date.today()}, made by `python benchmarks/workers.py`; {os.cpu_count()} cores, {chosen.rounds} rounds."
    (HERE / "results" / "workers.md").write_text(
        f"# Several processes\n\n{made}\n\n## Speed\n\n" + "\n".join(rows) + "\n\n"
        f"## Memory at the {shape.name} shape\n\n" + "\n".join(used) + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()

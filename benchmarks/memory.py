"""Peak memory as text grows: `bilmo embed` and `bilmo train` on a small and on a large text.

The word cache is made small, so that it is full in both runs and only growth with the text is measured. The large
training text is the small one twenty times: memory may grow only with the number of distinct words.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

from embed import SHAPES, write_weights
from text import wikipedia, write_text

HERE = Path(__file__).parent
SMALL, LARGE = 200_000, 2_000_000
TRAINED, TIMES = 500_000, 20
CACHE = 4 << 20
BILMO = f"import bilmo.embed.word_cache as w; w.CACHE_BYTES = {CACHE}; from bilmo.cli.app import main; main()"


def peak(*command: str | Path) -> float:
    """Peak memory of a command, in megabytes."""
    process = subprocess.Popen([sys.executable, "-c", BILMO, *map(str, command)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, f"{command} failed"
    return 1024 * used.ru_maxrss / 1e6


def main() -> None:
    """Measure and write the table."""
    rows = ["| what | text | peak memory |", "|---|---|---|"]

    def report(what: str, text: str, megabytes: float) -> None:
        rows.append(f"| {what} | {text} | {megabytes:,.0f} MB |")
        print(rows[-1], flush=True)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_weights(SHAPES[0], folder / "small")
        for tokens in (SMALL, LARGE):
            text = folder / "text.txt"
            write_text(text, wikipedia(), tokens)
            settings = ("--lang", "spaces", "--mix", "mean", "--dtype", "float16")
            found = peak("embed", folder / "small", text, "-o", folder / f"{tokens}.h5", *settings)
            report("`bilmo embed`, small shape, .h5", f"{tokens:,} tokens", found)
        once = folder / "once.txt"
        write_text(once, wikipedia(), TRAINED)
        some = once.read_bytes()
        for times in (1, TIMES):
            text = folder / "times.txt"
            with text.open("wb") as file:
                for _ in range(times):
                    file.write(some)
            settings = ("--lang", "spaces", "--recipe", "tiny", "--epochs", f"{1 / times:g}")
            found = peak("train", text, "-o", folder / f"trained-{times}", *settings)
            report("`bilmo train`, recipe tiny, same number of steps", f"{times} x {TRAINED:,} words", found)
    heading = f"# Memory\n\n{date.today()}, made by `python benchmarks/memory.py`; two threads.\n\n"
    (HERE / "results" / "memory.md").write_text(heading + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Characters against a word table: models of equal size on a million words, the 10,000 most frequent predicted.

Both are trained by the same recipe with the commands that are printed, and judged on text that neither has seen, over
the same words. The table is as wide as makes the number of parameters equal.
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import Any

from bilmo.embed.load import load
from bilmo.embed.score import score
from bilmo.text.files import lines
from bilmo.train import recipe as recipes
from bilmo.train.events import Finished, Look, Prepared
from bilmo.train.run import train
from text import wikipedia, write_text

HERE = Path(__file__).parent
WORDS, JUDGED, VOCABULARY = 1_000_000, 100_000, 10_000
COMMON: dict[str, Any] = {"vocab_size": VOCABULARY, "lang": "spaces"}


def parameters(folder: Path, text: Path, changes: dict[str, Any]) -> int:
    """Of a model that is not trained."""
    for event in train([text], folder, recipes.read("novel", COMMON | changes)):
        if isinstance(event, Prepared):
            return event.parameters
    raise RuntimeError("nothing was prepared")


def equal_width(folder: Path, text: Path, wanted: int) -> int:
    """The width of a word table that makes a model about as large."""
    narrow, wide = (parameters(folder / f"width-{w}", text, {"words": "table", "table_width": w}) for w in (10, 20))
    return round(10 + 10 * (wanted - narrow) / (wide - narrow))


def trained(folder: Path, text: Path, changes: dict[str, Any]) -> float:
    """Train, or go on; minutes of it."""
    for event in train([text], folder, recipes.read("novel", COMMON | changes)):
        if isinstance(event, Look):
            print(f"{folder.name}: step {event.number}: ahead {event.ahead:.1f}, behind {event.behind:.1f}", flush=True)
        if isinstance(event, Finished):
            minutes = event.progress.seconds / 60
    return minutes


def main(folder: Path) -> None:
    """Train whatever is not trained yet, then the table."""
    folder.mkdir(parents=True, exist_ok=True)
    text, other = folder / "train.txt", folder / "judged.txt"
    if not other.exists():
        source = wikipedia()
        write_text(text, source, WORDS)
        write_text(other, source, JUDGED)
    width = equal_width(folder, text, parameters(folder / "size", text, {}))
    rows = [
        "| words | parameters | minutes | forward perplexity | backward | command |",
        "|---|---|---|---|---|---|",
    ]
    common = f"bilmo train train.txt -o MODEL --recipe novel --lang spaces --vocab-size {VOCABULARY}"
    found = {}
    for name, changes, more in (
        ("characters", {}, ""),
        ("table", {"words": "table", "table_width": width}, f" --words table --table-width {width}"),
    ):
        minutes = trained(folder / name, text, changes)
        size = parameters(folder / f"size-{name}", text, changes)
        sentences = [line.split() for line in lines(other)]
        perplexity = score(load(folder / name), sentences).perplexity
        found[name] = perplexity["ahead"]
        rows.append(
            f"| {name} | {size:,} | {minutes:.0f} | **{perplexity['ahead']:.1f}** | {perplexity['behind']:.1f} "
            f"| `{common}{more}` |"
        )
        print(rows[-1], flush=True)
    better = 1 - found["characters"] / found["table"]
    heading = (
        f"# Characters against a word table\n\n{date.today()}, made by `python benchmarks/characters.py FOLDER`: "
        f"{WORDS:,} words of English Wikipedia, judged on {JUDGED:,} others, isolated sentences, full softmax over the "
        f"{VOCABULARY:,} most frequent words, `</S>` counted. Characters are {better:.1%} better ahead.\n\n"
    )
    (HERE / "results" / "characters.md").write_text(heading + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Real sentences for the benchmarks."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from bilmo.text.files import lines
from bilmo.text.split import english

DATA = Path(os.environ.get("BILMO_DATA", Path(__file__).parents[2] / "shared" / "data"))


def wikipedia() -> Iterator[list[str]]:
    """Sentences of English Wikipedia in text order."""
    for row in lines(DATA / "text" / "wiki-en.txt.xz"):
        yield from english(row)


def write_text(path: Path, text: Iterator[list[str]], tokens: int) -> None:
    """Write the next `tokens` tokens of a text, one tokenized sentence per line; `text` continues after them."""
    with path.open("w", encoding="utf-8") as file:
        while tokens > 0:
            sentence = next(text)
            file.write(" ".join(sentence) + "\n")
            tokens -= len(sentence)


def sentences(number: int, seed: int = 1) -> list[list[str]]:
    """`number` distinct sentences of English Wikipedia in random order."""
    path = DATA / "text" / "wiki-en.txt.xz"
    if not path.exists():
        sys.exit(f"The benchmark needs real text, and {path} does not exist. Set BILMO_DATA to the data folder.")
    rows = islice(lines(path), 20 * number // 3)
    distinct = {tuple(sentence): None for row in rows for sentence in english(row) if 3 <= len(sentence) <= 100}
    found = [list(sentence) for sentence in distinct]
    random.Random(seed).shuffle(found)
    assert len(found) >= number, f"{path}: only {len(found)} sentences"
    return found[:number]

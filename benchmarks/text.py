"""Real sentences to measure with."""

from __future__ import annotations

import os
import random
import sys
from itertools import islice
from pathlib import Path

from bilmo.text.files import lines
from bilmo.text.split import english

DATA = Path(os.environ.get("BILMO_DATA", Path(__file__).parents[2] / "shared" / "data"))


def sentences(number: int, seed: int = 1) -> list[list[str]]:
    """So many sentences of English Wikipedia in random order, none of them twice."""
    path = DATA / "text" / "wiki-en.txt.xz"
    if not path.exists():
        sys.exit(
            f"The benchmark needs real text, and {path} is not there. Set BILMO_DATA to a folder with text/wiki-en."
        )
    rows = islice(lines(path), 20 * number // 3)
    distinct = {tuple(sentence): None for row in rows for sentence in english(row) if 3 <= len(sentence) <= 100}
    found = [list(sentence) for sentence in distinct]
    random.Random(seed).shuffle(found)
    assert len(found) >= number, f"{path}: only {len(found)} sentences"
    return found[:number]

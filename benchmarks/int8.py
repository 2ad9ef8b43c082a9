"""int8 against float32: `python benchmarks/int8.py MODEL TEXT`.

The smallest cosine over all tokens of a text, for each layer of a trained model.
"""

from __future__ import annotations

import sys
from datetime import date
from itertools import islice
from pathlib import Path

import numpy as np

import bilmo
from bilmo.text.files import lines

HERE = Path(__file__).parent
SENTENCES = 1000


def main(model: Path, text: Path) -> None:
    """Measure and write the table."""
    exact, rough = (bilmo.load(model, precision=precision) for precision in ("float32", "int8"))
    sentences = list(islice((s for line in lines(text) for s in exact.sentences(line) if s), SENTENCES))
    least = np.full(exact.config.layers + 1, 1.0)
    for a, b in zip(exact.layers(sentences), rough.layers(sentences), strict=True):
        cosines = (a * b).sum(axis=-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)  # (L+1, tokens)
        least = np.minimum(least, cosines.min(axis=1))
    config = exact.config
    row = (
        f"| {len(config.directions)} x {config.layers} layers, {config.cell.cells} cells, width {config.width} "
        f"| {sum(map(len, sentences)):,} | {', '.join(f'{value:.5f}' for value in least)} |"
    )
    print(row)
    heading = f"# int8 against float32\n\n{date.today()}, made by `python benchmarks/int8.py MODEL TEXT`.\n\n"
    table = "| model | tokens | smallest cosine: layers 0 and up |\n|---|---|---|\n"
    (HERE / "results" / "int8.md").write_text(f"{heading}{table}{row}\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

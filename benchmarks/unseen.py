"""Models with different vocabularies on the same unseen words: `python benchmarks/unseen.py FOLDER MODEL MODEL ...`.

FOLDER has text files that no model was trained on, one per kind of text, such as the folder `unseen` that
scripts/make_text.py writes. A perplexity depends on the vocabulary, because all unknown words count as `<UNK>`. So only
the words that all models know are counted, and no boundaries: the same positions for each model. Isolated sentences,
full softmax. The table goes to results/unseen.md. `--sentences N` takes the first N of each file and saves nothing.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from datetime import date
from itertools import islice
from pathlib import Path

import numpy as np

import bilmo
from bilmo.embed.probability import scored
from bilmo.text.files import lines

RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--sentences", type=int)
    given = parser.parse_args(arguments)
    models = {name: bilmo.load(name) for name in given.models}
    rows = []
    for path in sorted(given.folder.glob("*.txt")):
        split = next(iter(models.values())).split
        sentences = (sentence for line in lines(path) for sentence in split(line) if sentence)
        rows.append(row(path.stem, models, list(islice(sentences, given.sentences))))
        print(rows[-1], flush=True)
    if given.sentences is None:
        (RESULTS / "unseen.md").write_text(page(given.models, rows), encoding="utf-8")


def row(kind: str, models: dict[str, bilmo.Embedder], sentences: list[list[str]]) -> str:
    """Perplexities of one kind of text, as a row of the table."""
    cells: list[str] = []
    words = [word for sentence in sentences for word in sentence]
    known = np.ones(len(words), dtype=bool)
    vocabs = [elmo.bundle.vocab for elmo in models.values()]
    for vocab in vocabs:
        assert vocab is not None
        known &= np.array(vocab.ids(words)) != vocab.unknown
    for elmo, vocab in zip(models.values(), vocabs, strict=True):
        assert vocab is not None
        found = list(scored(elmo, sentences))
        cells.append(f"{np.mean(np.array(vocab.ids(words)) == vocab.unknown):.1%}")
        for direction in elmo.config.directions:
            logs = np.concatenate([one.words[direction] for one in found]).astype(np.float64)
            cells.append(f"{math.exp(-logs[known].mean()):.1f}")
    return f"| {kind} | {known.sum():,} | {' | '.join(cells)} |"


def page(models: Sequence[str], rows: Sequence[str]) -> str:
    """The table, with what is counted."""
    names = [Path(model).name for model in models]
    head = " | ".join(f"{name}: unknown | forward | backward" for name in names)
    return (
        f"# Unseen text, words that all models know\n\n{date.today()}, made by `python benchmarks/unseen.py FOLDER "
        f"{' '.join(names)}`. Perplexity over isolated sentences, full softmax, without boundaries, at the positions "
        "whose word is in the vocabulary of every model; the share of unknown words is that of all words.\n\n"
        f"| unseen text | words counted | {head} |\n{'|---' * (2 + 3 * len(names))}|\n" + "\n".join(rows) + "\n"
    )


if __name__ == "__main__":
    main()

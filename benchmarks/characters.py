"""Characters against a word table: models of equal size on a million words, the 10,000 most frequent predicted.

A table takes the parameters of a whole network, so a model with one must save them elsewhere, in one of two ways: all
of the network is narrower (as Kim et al. 2016 compared), or the network stays and the table is narrow. All three are
trained by the same recipe with the commands that are printed, and judged on text that none has seen, over the same
words; a 5-gram model of the same text and vocabulary is there to compare with. A run that was stopped is gone on with
in the same FOLDER.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from ngrams import KneserNey, perplexity

from bilmo.embed.load import load
from bilmo.embed.perplexity import score
from bilmo.text.files import lines
from bilmo.train import recipe as recipes
from bilmo.train.build import plan_model
from bilmo.train.corpus import Corpus
from bilmo.train.events import Evaluation
from bilmo.train.recipe import Recipe
from bilmo.train.run import train
from text import wikipedia, write_text

HERE = Path(__file__).parent
WORDS, JUDGED, VOCABULARY = 1_000_000, 100_000, 10_000
Changes = dict[str, Any]
COMMON: Changes = {"vocab_size": VOCABULARY, "lang": "spaces"}


def narrow_network(width: int) -> Changes:
    """A table as wide as the network, all of it this wide."""
    return {"words": "table", "width": width, "cells": 2 * width}


def narrow_table(width: int) -> Changes:
    """The network as it was, and a table this wide."""
    return {"words": "table", "table_width": width}


def recipe_of(changes: Changes) -> Recipe:
    """The recipe that a user gets who names none, changed."""
    return recipes.read("novel", COMMON | changes)


def parameters(corpus: Corpus, changes: Changes) -> int:
    """Of a model for these words."""
    recipe = recipe_of(changes)
    return plan_model(recipe.network, recipe.text, corpus.words, corpus.counts).parameters()


def as_large(corpus: Corpus, wanted: int, narrowed: Callable[[int], Changes]) -> Changes:
    """The width that brings the number of parameters closest to the wanted one."""
    return min(map(narrowed, range(8, 128)), key=lambda changes: abs(parameters(corpus, changes) - wanted))


def trained(folder: Path, text: Path, changes: Changes) -> None:
    """Train, or go on."""
    for event in train([text], folder, recipe_of(changes)):
        if isinstance(event, Evaluation):
            print(
                f"{folder.name}: step {event.number}: forward {event.forward:.1f}, backward {event.backward:.1f}",
                flush=True,
            )


def options(changes: Changes) -> str:
    """The same changes, as a user types them."""
    return "".join(f" --{name.replace('_', '-')} {value}" for name, value in changes.items())


def main(folder: Path) -> None:
    """Train whatever is not trained yet, then the table of results."""
    folder.mkdir(parents=True, exist_ok=True)
    text, other = folder / "train.txt", folder / "judged.txt"
    if not other.exists():
        source = wikipedia()
        write_text(text, source, WORDS)
        write_text(other, source, JUDGED)
    trained(folder / "characters", text, {})
    corpus = Corpus(folder / "characters" / "training" / "corpus")
    size = parameters(corpus, {})
    models: dict[str, Changes] = {
        "characters": {},
        "table, narrower network": as_large(corpus, size, narrow_network),
        "narrow table": as_large(corpus, size, narrow_table),
    }
    sentences = [line.split() for line in lines(other)]
    rows = [
        "| words | parameters | forward perplexity | characters are better by | backward | command |",
        "|---" * 6 + "|",
    ]
    forward, vocab = 0.0, load(folder / "characters").bundle.vocab
    assert vocab is not None
    for name, changes in models.items():
        here = folder / name.replace(",", "").replace(" ", "-")
        trained(here, text, changes)
        found = score(load(here), sentences).perplexity
        forward = forward or found["forward"]
        better = f"{1 - forward / found['forward']:.1%}" if changes else ""
        rows.append(
            f"| {name} | {parameters(corpus, changes):,} | **{found['forward']:.1f}** | {better} "
            f"| {found['backward']:.1f} | `bilmo train train.txt -o MODEL{options(COMMON | changes)}` |"
        )
        print(rows[-1], flush=True)
    plain = perplexity(KneserNey.of(corpus, vocab), sentences, vocab)
    rows.append(f"| 5-grams (interpolated, modified Kneser-Ney) | | {plain:.1f} | {1 - forward / plain:.1%} | | |")
    heading = (
        f"# Characters against a word table\n\n{date.today()}, made by `python benchmarks/characters.py FOLDER`: "
        f"{WORDS:,} words of English Wikipedia, judged on {JUDGED:,} others, isolated sentences, full softmax over the "
        f"{VOCABULARY:,} most frequent words, `</S>` counted; of others the table sees `<UNK>`, the characters their "
        "spelling. One seed.\n\n"
    )
    (HERE / "results" / "characters.md").write_text(heading + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

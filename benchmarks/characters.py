"""Characters against a word table: `python benchmarks/characters.py FOLDER`.

Models of equal size are trained on a million words and predict the 10,000 most frequent ones. A word table needs the
parameters of a whole network, so a model with a table must save them elsewhere: the whole network is narrower (as in
Kim et al. 2016), or the network stays the same and the table is narrow. All three models are trained with the same
recipe by the printed commands, and evaluated on unseen text over the same words. A 5-gram model of the same text and
vocabulary is added for comparison. An interrupted run resumes in the same FOLDER.
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
from bilmo.training import recipe as recipes
from bilmo.training.build import plan_model
from bilmo.training.corpus import Corpus
from bilmo.training.events import Evaluation
from bilmo.training.recipe import Recipe
from bilmo.training.run import train
from text import wikipedia, write_text

HERE = Path(__file__).parent
WORDS, EVALUATED, VOCABULARY = 1_000_000, 100_000, 10_000
Changes = dict[str, Any]
COMMON: Changes = {"vocab_size": VOCABULARY, "lang": "spaces"}


def narrow_network(width: int) -> Changes:
    """A table as wide as the network; both have this width."""
    return {"words": "table", "width": width, "cells": 2 * width}


def narrow_table(width: int) -> Changes:
    """The usual network, and a table of this width."""
    return {"words": "table", "table_width": width}


def recipe_of(changes: Changes) -> Recipe:
    """The default recipe with some settings changed."""
    return recipes.read("novel", COMMON | changes)


def parameters(corpus: Corpus, changes: Changes) -> int:
    """The number of parameters of a model for these words."""
    recipe = recipe_of(changes)
    return plan_model(recipe.network, recipe.text, corpus.words, corpus.counts).parameters()


def as_large(corpus: Corpus, wanted: int, narrowed: Callable[[int], Changes]) -> Changes:
    """The settings whose number of parameters is closest to the wanted one."""
    return min(map(narrowed, range(8, 128)), key=lambda changes: abs(parameters(corpus, changes) - wanted))


def trained(folder: Path, text: Path, changes: Changes) -> None:
    """Train or resume."""
    for event in train([text], folder, recipe_of(changes)):
        if isinstance(event, Evaluation):
            print(
                f"{folder.name}: step {event.number}: forward {event.forward:.1f}, backward {event.backward:.1f}",
                flush=True,
            )


def options(changes: Changes) -> str:
    """The same settings as options of the command line."""
    return "".join(f" --{name.replace('_', '-')} {value}" for name, value in changes.items())


def main(folder: Path) -> None:
    """Train what is not trained yet, then write the table of results."""
    folder.mkdir(parents=True, exist_ok=True)
    text, other = folder / "train.txt", folder / "unseen.txt"
    if not other.exists():
        source = wikipedia()
        write_text(text, source, WORDS)
        write_text(other, source, EVALUATED)
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
        f"{WORDS:,} words of English Wikipedia, evaluated on {EVALUATED:,} others; isolated sentences, full softmax "
        f"over the {VOCABULARY:,} most frequent words, `</S>` counted. For other words the table reads `<UNK>`, the "
        "characters read the spelling. One seed.\n\n"
    )
    (HERE / "results" / "characters.md").write_text(heading + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

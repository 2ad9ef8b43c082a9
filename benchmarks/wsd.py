"""Word sense disambiguation with every layer of a model: `python benchmarks/wsd.py MODEL [MODEL ...]`.

The senses are learned from SemCor and scored on the ALL test set (7,253 words) by `bilmo.Disambiguator`: F1 as the
official scorer counts it. SemCor is embedded once for each model; its layers are kept in memory as float16. The
weight of the prior is chosen on every tenth block of 100 sentences of SemCor, with the top layer of each model.

The table goes to results/wsd.md. Options: --sentences N uses the first N sentences of SemCor; then nothing is saved.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import bilmo
from bilmo.embed.word_space import unit
from bilmo.net.mix import How
from bilmo.sense.labelled import corpus
from bilmo.sense.labelled.corpus import Marked
from bilmo.sense.labelled.disambiguator import Disambiguator
from bilmo.sense.labelled.inventory import Inventory
from bilmo.sense.labelled.learn import Learning, vectors_of
from bilmo.sense.labelled.measure import sense_score
from bilmo.tasks.core.measure import Score

DATA = Path(os.environ.get("BILMO_DATA", Path(__file__).parents[2] / "shared" / "data")) / "tasks" / "senses"
RESULTS = Path(__file__).parent / "results" / "wsd.md"
PRIORS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2)
BATCH_SENTENCES = 1000


class Stored:
    """In place of an Embedder: gives the mixes of layers that are already computed."""

    def __init__(self, elmo: bilmo.Embedder, sentences: Sequence[Marked]) -> None:
        self.config, self.start = elmo.config, elmo.start
        self._layers: dict[tuple[str, ...], NDArray[np.float16]] = {}
        for at in range(0, len(sentences), BATCH_SENTENCES):
            some = [one.tokens for one in sentences[at : at + BATCH_SENTENCES] if one.uses]
            for tokens, values in zip(some, elmo.embed(some, mix="all", dtype="float16"), strict=True):
                self._layers[tuple(tokens)] = cast("NDArray[np.float16]", values)
            print(f"\r{at:,} sentences", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)

    def embed(self, sentences: Sequence[Sequence[str]], *, mix: How) -> list[NDArray[np.float32]]:
        """The vectors of sentences, as `Embedder.embed` gives them."""
        return [mixed(self._layers[tuple(tokens)].astype(np.float32), mix) for tokens in sentences]


def mixed(layers: NDArray[np.float32], mix: How) -> NDArray[np.float32]:
    """(L+1, tokens, W) to (tokens, width)."""
    if mix == "concat":
        return np.concatenate(list(layers[1:]), axis=-1)
    chosen = layers if mix == "mean" else layers[list(cast("Sequence[int]", mix))]
    return np.asarray(chosen.mean(axis=0))


def learned(stored: Stored, train: Sequence[Marked], inventory: Inventory, mix: How, *, whiten: bool) -> Disambiguator:
    """A Disambiguator with sense vectors of stored layers."""
    made = Disambiguator(cast("Any", stored), mix=mix, whiten=whiten)
    learning = Learning(made.elmo, train, made.settings)
    for _ in learning.steps():
        pass
    return made.use(learning, inventory)


def scores(made: Disambiguator, sentences: Sequence[Marked], priors: Sequence[float]) -> list[Score]:
    """The score with each prior; the vectors are the same."""
    uses = [use for one in sentences for use in one.uses]
    learned = made.learned
    vectors = unit(vectors_of(made.elmo, sentences, made.settings.mix, learned.whitening))
    found = []
    for prior in priors:
        chosen = [learned.choose([use.lemma], vector, prior) for use, vector in zip(uses, vectors, strict=True)]
        found.append(sense_score(uses, chosen, learned.inventory))
    return found


def from_text(
    made: Disambiguator, elmo: bilmo.Embedder, sentences: Sequence[Marked], prior: float
) -> tuple[Score, int]:
    """The score where only the tokens are given: a word counts if it is found at exactly its place."""
    made = Disambiguator(elmo, mix=made.settings.mix, prior=prior).restore(made.learned)
    predicted = made.predict([one.tokens for one in sentences])
    uses, chosen = [], []
    for one, senses in zip(sentences, predicted, strict=True):
        places = {(sense.begin, sense.end): (sense.sense, sense.fallback) for sense in senses}
        for use in one.uses:
            uses.append(use)
            chosen.append(places.get((use.begin, use.end), (None, False)))
    return sense_score(uses, chosen, made.learned.inventory), sum(fallback for _, fallback in chosen)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--sentences", type=int, help="sentences of SemCor to use; nothing is saved")
    given = parser.parse_args(arguments)
    inventory = Inventory.read(DATA / "wordnet30.index.sense.xz")
    train = corpus.read(DATA / "semcor.jsonl.xz")[: given.sentences]
    test = corpus.read(DATA / "ALL.data.xml.xz", DATA / "ALL.gold.key.txt.xz")
    rows = [
        "# Word sense disambiguation",
        "",
        f"{date.today()}, by `python benchmarks/wsd.py {' '.join(given.models)}`. Senses from SemCor, F1 on the ALL "
        "test set. Words that SemCor does not have get their first sense in WordNet (fall-backs, counted in the last "
        "column); always taking the first sense is the baseline.",
    ]
    for name in given.models:
        begun = time.process_time()
        rows += ["", f"## {name}", "", *section(bilmo.load(name), train, test, inventory)]
        rows += ["", f"{time.process_time() - begun:.0f} seconds of processor time."]
    text = "\n".join(rows) + "\n"
    print(text)
    if given.sentences is None:
        RESULTS.write_text(text, encoding="utf-8")


def section(elmo: bilmo.Embedder, train: list[Marked], test: list[Marked], inventory: Inventory) -> list[str]:
    """The tables of one model."""
    stored = Stored(elmo, [*train, *test])
    top = elmo.config.layers
    mixes: list[tuple[str, How]] = [(f"layer {number}", (number,)) for number in range(top + 1)]
    mixes += [("mean of all", "mean"), (f"mean of 1 to {top}", tuple(range(1, top + 1))), ("concatenated", "concat")]
    held = [one for number, one in enumerate(train) if number // 100 % 10 == 9]
    rest = [one for number, one in enumerate(train) if number // 100 % 10 != 9]
    found = scores(learned(stored, rest, inventory, (top,), whiten=True), held, PRIORS)
    by_prior = {prior: one.value for prior, one in zip(PRIORS, found, strict=True)}
    best = max(by_prior, key=lambda prior: by_prior[prior])
    rows = ["| layers | nearest sense | whitened | whitened, with the prior | fall-backs |", "|---|---|---|---|---|"]
    for what, mix in mixes:
        (plain,) = scores(learned(stored, train, inventory, mix, whiten=False), test, [0])
        white = learned(stored, train, inventory, mix, whiten=True)
        without, full = scores(white, test, [0, best])
        cells = [f"{100 * one.value:.1f}" for one in (plain, without, full)]
        fallbacks = full.notes[0].split()[0]
        rows.append(f"| {what} | {' | '.join(cells)} | {fallbacks} |")
        print(rows[-1], file=sys.stderr, flush=True)
        if mix == (top,):
            first = dict(full.details)["always the first sense, F1"]
            chosen = white
            parts = "; ".join(f"{row.label} {100 * row.f1:.1f} of {row.true:,}" for row in full.labels)
    rows.append(f"| always the first sense | {100 * first:.1f} | | | {len(uses_of(test)):,} |")
    raw, fallbacks_of_raw = from_text(chosen, elmo, test, best)
    values = dict(raw.details)
    rows += [
        "",
        f"The prior is {best}, chosen on held-out sentences of SemCor with layer {top}: "
        + ", ".join(f"{prior}: {100 * value:.1f}" for prior, value in by_prior.items())
        + ".",
        "",
        f"F1 by part of speech, layer {top} with the prior: {parts}.",
        "",
        f"Without the given lemmas and parts of speech, from the tokens alone: F1 {100 * raw.value:.1f} (precision "
        f"{100 * values['precision']:.1f}, recall {100 * values['recall']:.1f}), {fallbacks_of_raw:,} fall-backs.",
    ]
    return rows


def uses_of(sentences: Sequence[Marked]) -> list[corpus.Use]:
    return [use for one in sentences for use in one.uses]


if __name__ == "__main__":
    main()

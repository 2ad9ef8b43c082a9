"""Senses without labels against the senses of SemCor: `python benchmarks/senses_groups.py MODEL [MODEL ...]`.

For each lemma of SemCor with at least 20 labelled uses, its uses are grouped as `bilmo senses` does, and the groups are
compared with the labels by the adjusted Rand index (0 by chance) and the V-measure. Baselines: as many groups at
random, and one group for all, which is the most frequent sense for every use. Lemmas of which only one sense is used
are left out of the means, because any single group is right there; how often they get one group is counted.

The table goes to results/senses_groups.md. Options: --lemmas N measures N lemmas, drawn at random; then nothing is
saved.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bilmo
from bilmo.embed.word_space import Whitening
from bilmo.net.mix import How
from bilmo.sense.groups import group
from bilmo.sense.labelled import corpus
from bilmo.sense.labelled.corpus import Marked
from bilmo.sense.labelled.inventory import Lemma
from bilmo.sense.labelled.learn import vectors_of
from bilmo.sense.senses import MOST_USES

DATA = Path(os.environ.get("BILMO_DATA", Path(__file__).parents[2] / "shared" / "data")) / "tasks" / "senses"
RESULTS = Path(__file__).parent / "results" / "senses_groups.md"
LEAST_USES = 20
BATCH_SENTENCES = 1000

Counts = NDArray[Any]


def table_of(true: Counts, found: Counts) -> Counts:
    """How often each pair of labels occurs."""
    counts = np.zeros((true.max() + 1, found.max() + 1))
    np.add.at(counts, (true, found), 1)
    return counts


def adjusted_rand(true: Counts, found: Counts) -> float:
    """Pairs of uses that both agree on, corrected for chance."""
    counts = table_of(true, found)

    def pairs(values: Counts) -> float:
        return float((values * (values - 1) / 2).sum())

    same, rows, columns = pairs(counts), pairs(counts.sum(axis=1)), pairs(counts.sum(axis=0))
    expected = rows * columns / pairs(np.array([len(true)]))
    most = (rows + columns) / 2
    return 1.0 if most == expected else (same - expected) / (most - expected)


def v_measure(true: Counts, found: Counts) -> float:
    """The harmonic mean of homogeneity and completeness."""
    shares = table_of(true, found) / len(true)

    def entropy(values: Counts) -> float:
        positive = values[values > 0]
        return float(-(positive * np.log(positive)).sum())

    of_true, of_found, both = entropy(shares.sum(axis=1)), entropy(shares.sum(axis=0)), entropy(shares)
    homogeneous = 1 - (both - of_found) / of_true if of_true else 1.0
    complete = 1 - (both - of_true) / of_found if of_found else 1.0
    return 2 * homogeneous * complete / (homogeneous + complete) if homogeneous + complete > 0 else 0.0


def uses_by_lemma(train: Sequence[Marked], lemmas: int | None) -> dict[Lemma, list[tuple[int, int]]]:
    """The sentence and the place of each use of the lemmas with enough uses."""
    found: dict[Lemma, list[tuple[int, int]]] = defaultdict(list)
    for number, one in enumerate(train):
        for place, use in enumerate(one.uses):
            if not use.named:
                found[use.lemma].append((number, place))
    kept = {lemma: places for lemma, places in sorted(found.items()) if len(places) >= LEAST_USES}
    if lemmas is not None:
        kept = {lemma: kept[lemma] for lemma in random.Random(0).sample(list(kept), lemmas)}
    return {lemma: random.Random(0).sample(places, min(len(places), MOST_USES)) for lemma, places in kept.items()}


def vectors(elmo: bilmo.Embedder, train: Sequence[Marked], mix: How, wanted: set[tuple[int, int]]) -> dict[Any, Any]:
    """The whitened vector of each wanted use, by its place."""
    keys, rows = [], []
    numbers = sorted({number for number, _ in wanted})
    for at in range(0, len(numbers), BATCH_SENTENCES):
        some = numbers[at : at + BATCH_SENTENCES]
        given = iter(vectors_of(elmo, [train[number] for number in some], mix))
        for number in some:
            for place in range(len(train[number].uses)):
                value = next(given)
                if (number, place) in wanted:
                    keys.append((number, place))
                    rows.append(value.astype(np.float16))
        print(f"\r{at:,} of {len(numbers):,} sentences", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    found = np.stack(rows)
    drawn = np.random.default_rng(0).permutation(len(found))[:20_000]
    whitening = Whitening.of(found[drawn].astype(np.float32))
    values = [whitening.apply(found[k : k + 4096].astype(np.float32)) for k in range(0, len(found), 4096)]
    return dict(zip(keys, np.concatenate(values), strict=True))


def section(elmo: bilmo.Embedder, train: Sequence[Marked], lemmas: int | None) -> list[str]:
    """The table of one model."""
    chosen = uses_by_lemma(train, lemmas)
    wanted = {place for places in chosen.values() for place in places}
    rows = ["| vectors | groups | adjusted Rand index | V-measure | mean number of groups |", "|---|---|---|---|---|"]
    mixes: list[tuple[str, How]] = [("mean of all layers", "mean"), ("top layer", "top")]
    for what, mix in mixes:
        by_place = vectors(elmo, train, mix, wanted)
        scores: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
        single = single_right = 0
        chance = np.random.default_rng(0)
        for places in chosen.values():
            keys = [train[number].uses[place].senses[0] for number, place in places]
            true = np.unique(keys, return_inverse=True)[1]
            labels = group(np.stack([by_place[place] for place in places]))[0]
            if true.max() == 0:
                single += 1
                single_right += int(labels.max() == 0)
                continue
            number = int(labels.max()) + 1
            one = np.zeros(len(true), dtype=int)
            for name, found in (
                ("found", labels),
                ("random", chance.integers(0, number, len(true))),
                ("one group", one),
            ):
                scores[name].append((adjusted_rand(true, found), v_measure(true, found), int(found.max()) + 1))
        for name, values in scores.items():
            rand, v, count = np.mean(values, axis=0)
            rows.append(f"| {what} | {name} | {rand:.3f} | {v:.3f} | {count:.2f} |")
            print(rows[-1], file=sys.stderr, flush=True)
        rows.append(f"| | only one sense is used | | | one group for {single_right:,} of {single:,} lemmas |")
    uses = [len(places) for places in chosen.values()]
    return [f"{len(chosen):,} lemmas, {sum(uses):,} uses.", "", *rows]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--lemmas", type=int, help="number of lemmas; nothing is saved")
    given = parser.parse_args(arguments)
    train = corpus.read(DATA / "semcor.jsonl.xz")
    text = [
        "# Groups of uses and the senses of SemCor",
        "",
        f"{date.today()}, by `python benchmarks/senses_groups.py {' '.join(given.models)}`. Means over lemmas with at "
        f"least {LEAST_USES} uses and more than one sense.",
    ]
    for name in given.models:
        begun = time.perf_counter()
        text += ["", f"## {name}", "", *section(bilmo.load(name), train, given.lemmas)]
        text += ["", f"{time.perf_counter() - begun:.0f} seconds."]
    print("\n".join(text))
    if given.lemmas is None:
        RESULTS.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

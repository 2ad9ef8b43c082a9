"""Senses without labels against the senses of SemCor: `python benchmarks/senses_groups.py MODEL [MODEL ...]`.

The uses of each lemma of SemCor with at least 20 labelled uses are grouped as `bilmo senses` does, and the groups are
compared with the labels by the adjusted Rand index (0 by chance) and the V-measure. The same is done for each word
form of these lemmas with at least 20 uses, in upper and lower case: `bilmo senses` groups the uses of one form, and
the uses of a lemma are grouped by their forms rather than by their senses.

For comparison: as many groups at random; one group for all, which is the most frequent sense for every use; the forms
as groups; and with labels: each use gets the sense that a linear regression on all other uses predicts, which shows
how much of the senses the vectors hold at most. Lemmas and forms of which only one sense is used are left out of the
means, because any single group is right there; how often they get one group is counted.

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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bilmo
from bilmo.embed.word_space import Whitening
from bilmo.sense.groups import group
from bilmo.sense.labelled import corpus
from bilmo.sense.labelled.corpus import Marked
from bilmo.sense.labelled.inventory import Lemma
from bilmo.sense.senses import MOST_USES

DATA = Path(os.environ.get("BILMO_DATA", Path(__file__).parents[2] / "shared" / "data")) / "tasks" / "senses"
RESULTS = Path(__file__).parent / "results" / "senses_groups.md"
LEAST_USES = 20
BATCH_SENTENCES = 1000
RIDGE = 0.5

Counts = NDArray[Any]
Floats = NDArray[np.float32]
Rows = NDArray[np.float16 | np.float32]


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


def with_labels(vectors: Floats, true: Counts) -> Counts:
    """The sense of each use by ridge regression on the other uses, computed for all of them at once."""
    inputs = np.concatenate([vectors, np.ones((len(vectors), 1), dtype=np.float32)], axis=1)
    senses = np.eye(true.max() + 1)[true]
    through = inputs @ np.linalg.inv(inputs.T @ inputs + RIDGE * np.eye(inputs.shape[1]))
    own = (through * inputs).sum(axis=1, keepdims=True)
    found = (through @ (inputs.T @ senses) - own * senses) / (1 - own)
    return np.asarray(found.argmax(axis=1))


@dataclass(frozen=True)
class Uses:
    """The uses of a lemma, or of one of its forms."""

    places: list[tuple[int, int]]
    """The sentence of each use, and its number among the uses there."""
    true: Counts
    forms: Counts
    """The senses and the forms of the uses, as numbers."""


def uses_of(train: Sequence[Marked], lemmas: int | None) -> tuple[list[Uses], list[Uses]]:
    """The uses of the lemmas, and of the forms of these lemmas, with enough uses."""
    by_lemma: dict[Lemma, list[tuple[int, int]]] = defaultdict(list)
    for number, one in enumerate(train):
        for k, use in enumerate(one.uses):
            if not use.named:
                by_lemma[use.lemma].append((number, k))
    kept = [by_lemma[lemma] for lemma in sorted(by_lemma) if len(by_lemma[lemma]) >= LEAST_USES]
    if lemmas is not None:
        kept = random.Random(0).sample(kept, lemmas)
    by_form: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for which, places in enumerate(kept):
        for place in places:
            by_form[which, form_of(train, place)].append(place)
    forms = [places for places in by_form.values() if len(places) >= LEAST_USES]
    return [numbered(train, places) for places in kept], [numbered(train, places) for places in forms]


def form_of(train: Sequence[Marked], place: tuple[int, int]) -> str:
    """The word of a use in lower case."""
    use = train[place[0]].uses[place[1]]
    return " ".join(train[place[0]].tokens[use.begin : use.end]).lower()


def numbered(train: Sequence[Marked], places: list[tuple[int, int]]) -> Uses:
    """At most as many uses as `bilmo senses` groups."""
    some = random.Random(0).sample(places, min(len(places), MOST_USES))
    senses = [train[number].uses[place].senses[0] for number, place in some]
    forms = [form_of(train, place) for place in some]
    true, found = (np.unique(names, return_inverse=True)[1] for names in (senses, forms))
    return Uses(some, true, found)


def layers_of(elmo: bilmo.Embedder, train: Sequence[Marked], wanted: set[tuple[int, int]]) -> Rows:
    """All layers of each wanted use (uses, layers, width), in the order of the text."""
    rows = []
    numbers = sorted({number for number, _ in wanted})
    for at in range(0, len(numbers), BATCH_SENTENCES):
        some = numbers[at : at + BATCH_SENTENCES]
        found = elmo.embed([train[number].tokens for number in some], mix="all")
        for number, values in zip(some, found, strict=True):
            for place, use in enumerate(train[number].uses):
                if (number, place) in wanted:
                    rows.append(values[:, use.begin : use.end].mean(axis=1).astype(np.float16))
        print(f"\r{at:,} of {len(numbers):,} sentences", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return np.stack(rows)


def whitened(rows: Rows) -> Floats:
    """The vectors as they are compared."""
    drawn = np.random.default_rng(0).permutation(len(rows))[:20_000]
    whitening = Whitening.of(rows[drawn].astype(np.float32))
    return np.concatenate([whitening.apply(rows[k : k + 4096].astype(np.float32)) for k in range(0, len(rows), 4096)])


def measured(every: Sequence[Uses], vectors: Floats, row_of: dict[tuple[int, int], int]) -> Iterator[str]:
    """The cells of a table, one row for each way of grouping."""
    scores: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    single = single_right = 0
    chance = np.random.default_rng(0)
    several_forms = any(uses.forms.max() for uses in every)
    for uses in every:
        here = vectors[[row_of[place] for place in uses.places]]
        labels = group(here)[0]
        if uses.true.max() == 0:
            single += 1
            single_right += int(labels.max() == 0)
            continue
        number = int(labels.max()) + 1
        ways = {
            "found": labels,
            "random": chance.integers(0, number, len(labels)),
            "one group": np.zeros(len(labels), dtype=int),
            "with labels": with_labels(here, uses.true),
        }
        if several_forms:
            ways["the forms"] = uses.forms
        for name, found in ways.items():
            scores[name].append((adjusted_rand(uses.true, found), v_measure(uses.true, found), len(np.unique(found))))
        if several_forms:
            against = adjusted_rand(uses.forms, labels), v_measure(uses.forms, labels), number
            scores["found, against the forms"].append(against)
    for name, values in scores.items():
        rand, v, count = np.mean(values, axis=0)
        yield f"{name} | {rand:.3f} | {v:.3f} | {count:.2f}"
    yield f"found, if only one sense is used | | | one group for {single_right:,} of {single:,}"


def section(elmo: bilmo.Embedder, train: Sequence[Marked], lemmas: int | None) -> list[str]:
    """The tables of one model."""
    by_lemma, by_form = uses_of(train, lemmas)
    wanted = {place for uses in (*by_lemma, *by_form) for place in uses.places}
    rows = layers_of(elmo, train, wanted)
    row_of = {place: number for number, place in enumerate(sorted(wanted))}
    text = []
    for what, every in (("lemmas", by_lemma), ("word forms", by_form)):
        uses = sum(len(one.places) for one in every)
        text += ["", f"{len(every):,} {what} with {uses:,} uses:", ""]
        text += [
            "| vectors | groups | adjusted Rand index | V-measure | mean number of groups |",
            "|---|---|---|---|---|",
        ]
        for name, chosen in (("mean of all layers", rows.mean(axis=1, dtype=np.float32)), ("top layer", rows[:, -1])):
            for cells in measured(every, whitened(chosen), row_of):
                text.append(f"| {name} | {cells} |")
                print(text[-1], file=sys.stderr, flush=True)
    return text


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--lemmas", type=int, help="number of lemmas; nothing is saved")
    given = parser.parse_args(arguments)
    train = corpus.read(DATA / "semcor.jsonl.xz")
    text = [
        "# Groups of uses and the senses of SemCor",
        "",
        f"{date.today()}, by `python benchmarks/senses_groups.py {' '.join(given.models)}`. Means over lemmas, and "
        f"over their word forms, with at least {LEAST_USES} uses and more than one sense. With labels: each use gets "
        "the sense that a linear regression on all other uses predicts.",
    ]
    for name in given.models:
        begun = time.process_time()
        text += ["", f"## {name}", *section(bilmo.load(name), train, given.lemmas)]
        text += ["", f"{time.process_time() - begun:.0f} seconds of processor time."]
    print("\n".join(text))
    if given.lemmas is None:
        RESULTS.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

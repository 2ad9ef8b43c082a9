"""How well vectors tell the senses of a word apart: `python benchmarks/quality/senses.py MODEL [MODEL ...]`.

- WiC: the same word in two sentences, in the same sense or not. Only the cosine of the two vectors is used: a threshold
  is chosen on the training pairs, and accuracy and the area under the curve are measured on the test pairs.
- SCWS: similarity of two words in their contexts; Spearman correlation of the cosine with the mean human rating.
- Word senses: each sense of SemCor is the mean vector of its uses; a word of the test set gets the nearest sense of its
  lemma. A lemma without uses gets its first sense in WordNet, and always taking the first sense is the baseline.

Every layer is measured by itself, and the mean of all layers. The table goes to results/senses.md. Options: --only
wic,scws,words for a part of it; then nothing is saved.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from data import found
from numpy.typing import NDArray
from scipy.stats import rankdata, spearmanr

import bilmo

RESULTS = Path(__file__).parents[1] / "results"
BATCH_SENTENCES = 2000
POS = {"NOUN": "1", "VERB": "2", "ADJ": "3", "ADV": "4"}
"""The digit of a part of speech in WordNet's sense keys; 5 is an adjective too."""

Vectors = NDArray[np.float32]
Use = tuple[list[str], slice]
"""A sentence, and where in it the word stands."""


def lines(path: Path) -> list[str]:
    with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def vectors_of(elmo: bilmo.Embedder, uses: Iterable[Use]) -> Vectors:
    """(uses, layers + 2, width): each layer of the word in its sentence, then their mean."""
    return np.concatenate(list(_vectors(elmo, list(uses))))


def _vectors(elmo: bilmo.Embedder, uses: list[Use]) -> Iterator[Vectors]:
    for at in range(0, len(uses), BATCH_SENTENCES):
        some = uses[at : at + BATCH_SENTENCES]
        layers = elmo.layers([sentence for sentence, _ in some])
        words = np.stack([values[:, place].mean(axis=1) for values, (_, place) in zip(layers, some, strict=True)])
        yield np.concatenate([words, words.mean(axis=1, keepdims=True)], axis=1)


def cosines(a: Vectors, b: Vectors) -> NDArray[np.floating[Any]]:
    """Over the last axis."""
    return np.asarray((a * b).sum(-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1) + 1e-12))


def best_threshold(scores: NDArray[Any], same: NDArray[np.bool_]) -> float:
    """The threshold with the highest accuracy."""
    order = np.argsort(scores)
    ordered, labels = scores[order], same[order]
    right = np.concatenate([[labels.sum()], labels.sum() + np.cumsum(~labels) - np.cumsum(labels)])
    best = int(np.argmax(right))  # the first `best` pairs are predicted to differ
    bounds = np.concatenate([[-np.inf], (ordered[1:] + ordered[:-1]) / 2, [np.inf]])
    return float(bounds[best])


def area_under_curve(scores: NDArray[Any], same: NDArray[np.bool_]) -> float:
    """The probability that a pair of the same sense scores higher than one of different senses."""
    positive, negative = same.sum(), (~same).sum()
    return float((rankdata(scores)[same].sum() - positive * (positive + 1) / 2) / (positive * negative))


def wic(elmo: bilmo.Embedder) -> dict[str, list[float]]:
    """Test accuracy with a threshold from the training pairs, and the area under the curve, for each layer."""
    scores, labels = {}, {}
    for part, name in (("train", "train.data.txt.xz"), ("test", "test.data.txt")):
        uses: tuple[list[Use], list[Use]] = [], []
        for line in lines(found("wic", name)):
            _, _, places, *sentences = line.split("\t")
            for side, place, sentence in zip(uses, map(int, places.split("-")), sentences, strict=True):
                side.append((sentence.split(" "), slice(place, place + 1)))
        sides = (vectors_of(elmo, side) for side in uses)
        scores[part] = cosines(*sides)  # (pairs, layers + 2)
        labels[part] = np.array([line == "T" for line in lines(found("wic", f"{part}.gold.txt"))])
    layers = range(scores["test"].shape[1])
    thresholds = [best_threshold(scores["train"][:, n], labels["train"]) for n in layers]
    return {
        "WiC accuracy": [float(((scores["test"][:, n] > thresholds[n]) == labels["test"]).mean()) for n in layers],
        "WiC area under the curve": [area_under_curve(scores["test"][:, n], labels["test"]) for n in layers],
    }


def scws(elmo: bilmo.Embedder) -> dict[str, list[float]]:
    """Spearman correlation with the mean rating."""
    rows = [line.split("\t") for line in lines(found("scws", "ratings.txt.xz"))]
    sides = [vectors_of(elmo, [marked(row[column]) for row in rows]) for column in (5, 6)]
    scores, ratings = cosines(*sides), [float(row[7]) for row in rows]
    return {"SCWS Spearman": [float(spearmanr(scores[:, n], ratings)[0]) for n in range(scores.shape[1])]}


def marked(context: str) -> Use:
    """The sentence around the word that stands in <b>; the context is already split by spaces."""
    before, word, after = re.split("<b>|</b>", context, maxsplit=2)
    ends = {".", "!", "?"}
    left: list[str] = []
    for token in reversed(before.split()):
        if token in ends:
            break
        left.insert(0, token)
    right: list[str] = []
    for token in after.split():
        right.append(token)
        if token in ends:
            break
    inside = word.split()
    return [*left, *inside, *right], slice(len(left), len(left) + len(inside))


def word_senses(elmo: bilmo.Embedder) -> dict[str, list[float]]:
    """Accuracy of the nearest sense, and of always the first sense."""
    sums: dict[str, Vectors] = {}
    by_lemma: dict[tuple[str, str], set[str]] = defaultdict(set)
    for uses, senses in labelled(semcor()):
        for sense, value in zip(senses, vectors_of(elmo, uses), strict=True):
            lemma, _, rest = sense.partition("%")
            by_lemma[lemma, rest[0].replace("5", "3")].add(sense)
            sums[sense] = sums[sense] + value if sense in sums else value  # the length of a sum does not change cosines
    first = first_senses()
    gold = {line.split()[0]: set(line.split()[1:]) for line in lines(found("senses", "ALL.gold.key.txt.xz"))}
    right, baseline, total = np.zeros(elmo.config.layers + 2), 0, 0
    for uses, names in labelled(test_words()):
        for name, value in zip(names, vectors_of(elmo, uses), strict=True):
            key, lemma, pos = name.split("\t")
            answers = gold[key]
            candidates = sorted(by_lemma[lemma, pos])
            total += 1
            baseline += first.get((lemma, pos)) in answers
            if not candidates:
                right += first.get((lemma, pos)) in answers
                continue
            nearest = cosines(np.stack([sums[sense] for sense in candidates]), value).argmax(axis=0)  # (layers + 2,)
            right += [candidates[n] in answers for n in nearest]
    return {
        "word senses, accuracy": list(right / total),
        "word senses, always the first": [baseline / total] * len(right),
    }


def labelled(sentences: Iterable[tuple[list[list[str]], list[str | None]]]) -> Iterator[tuple[list[Use], list[str]]]:
    """Uses and their labels, some sentences at a time. A token may consist of several words."""
    uses: list[Use] = []
    labels: list[str] = []
    for tokens, marks in sentences:
        words = [word for token in tokens for word in token]
        at = 0
        for token, mark in zip(tokens, marks, strict=True):
            if mark is not None:
                uses.append((words, slice(at, at + len(token))))
                labels.append(mark)
            at += len(token)
        if len(uses) >= BATCH_SENTENCES:
            yield uses, labels
            uses, labels = [], []
    if uses:
        yield uses, labels


def semcor() -> Iterator[tuple[list[list[str]], list[str | None]]]:
    for line in lines(found("senses", "semcor.jsonl.xz")):
        entry = json.loads(line)
        yield [word.split("_") for word in entry["words"]], entry["senses"]


def test_words() -> Iterator[tuple[list[list[str]], list[str | None]]]:
    with lzma.open(found("senses", "ALL.data.xml.xz")) as file:
        for sentence in ElementTree.parse(file).iter("sentence"):
            tokens, marks = [], []
            for word in sentence:
                tokens.append((word.text or "").split() or [""])
                asked = word.tag == "instance"
                marks.append(f"{word.get('id')}\t{word.get('lemma')}\t{POS[word.get('pos', '')]}" if asked else None)
            yield tokens, marks


def first_senses() -> dict[tuple[str, str], str]:
    """WordNet's first sense of each lemma and part of speech."""
    found_first = {}
    for line in lines(found("senses", "wordnet30.index.sense.xz")):
        sense, _, number, _ = line.split(" ")
        if number == "1":
            lemma, _, rest = sense.partition("%")
            found_first[lemma, rest[0].replace("5", "3")] = sense
    return found_first


MEASURES = {"wic": wic, "scws": scws, "words": word_senses}


def section(name: str, elmo: bilmo.Embedder, measures: Sequence[str]) -> str:
    """The table of one model."""
    layers = elmo.config.layers + 1
    heads = [*(f"layer {n}" for n in range(layers)), "mean"]
    rows = [f"## {name}", "", f"| | {' | '.join(heads)} |", "|---" * (layers + 2) + "|"]
    for measure in measures:
        for what, values in MEASURES[measure](elmo).items():
            rows.append(f"| {what} | {' | '.join(f'{value:.3f}' for value in values)} |")
    return "\n".join(rows) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--only", default=",".join(MEASURES), help="measures, separated by commas; nothing is saved")
    given = parser.parse_args(arguments)
    measures = given.only.split(",")
    parts = [f"# Word senses\n\n{date.today()}, by `python benchmarks/quality/senses.py {' '.join(given.models)}`\n"]
    for name in given.models:
        parts.append(section(name, bilmo.load(name), measures))
        print(parts[-1], flush=True)
    if measures == list(MEASURES):
        (RESULTS / "senses.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()

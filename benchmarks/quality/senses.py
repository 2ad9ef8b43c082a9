"""Which layers tell uses of words apart, and how their vectors are made comparable.

    python benchmarks/quality/senses.py MODEL [MODEL ...]

- WiC: the same word in two sentences, in the same sense or not. Only the cosine of the two vectors is used: a threshold
  is chosen on the training pairs, and accuracy and the area under the curve are measured on the test pairs.
- SCWS: similarity of two words, each in its own context; Spearman correlation of the cosine with the mean rating.
- CoSimLex: similarity of the same two words in two contexts; Pearson correlation of the change of the cosine with the
  change of the rating (uncentred, as in SemEval-2020 task 3), and Spearman correlation of all cosines with all ratings.
- SemCor, same lemma: is the nearest other use of a lemma one of the same sense? Only lemmas with 5 uses or more and
  with several senses; always guessing the most frequent sense is the baseline.
- SemCor, all words: is the nearest of all other uses one of the same sense? For 2,000 uses.

Every layer, the mean of all layers, and the mean of layers 1 and higher are measured; raw, centred, and whitened as
`bilmo.sense.space` does it, with statistics of a sample of SemCor. SemCor is every fourth sentence. The table goes to
results/senses.md. Options: --only wic,scws,cosimlex,semcor for a part of it, and --every 40 for fewer sentences of
SemCor; then nothing is saved. `benchmarks/wsd.py` measures word sense disambiguation.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from data import found
from numpy.typing import NDArray
from scipy.stats import rankdata, spearmanr

import bilmo
from bilmo.embed.word_space import Whitening, unit
from bilmo.sense.space import SAMPLE_WORDS
from bilmo.text.split import english

RESULTS = Path(__file__).parents[1] / "results"
BATCH_SENTENCES = 2000
EVERY, LEAST_USES, ASKED_USES = 4, 5, 2000

Vectors = NDArray[np.float32]
Use = tuple[list[str], slice]
"""A sentence, and where in it the word stands."""
Mixes = Mapping[str, list[int]]
Way = Callable[[Vectors], Vectors]
"""Makes the vectors of one mix comparable."""
Rows = dict[str, dict[tuple[str, str], float]]
"""By measure, then by the names of the mix and of the way."""


class Ways:
    """A model, and every way to compare the vectors of uses."""

    def __init__(self, name: str) -> None:
        self.elmo = bilmo.load(name)
        layers = list(range(self.elmo.config.layers + 1))
        self.mixes = {f"layer {n}": [n] for n in layers} | {"mean": layers, "layers 1 and higher": layers[1:]}
        sentences = [words for words, _ in random.Random(0).sample(semcor(EVERY), 1200)]
        sample = np.concatenate(self.elmo.layers(sentences), axis=1)[:, :SAMPLE_WORDS].transpose(1, 0, 2)
        self._spaces: dict[str, dict[str, Way]] = {}
        for mix, numbers in self.mixes.items():
            values = sample[:, numbers].mean(axis=1)
            centre, whitening = values.mean(axis=0), Whitening.of(values)
            self._spaces[mix] = {
                "raw": unit,
                "centred": lambda some, centre=centre: unit(some - centre),  # type: ignore[misc]
                "whitened": whitening.apply,
            }

    def each(self, uses: Vectors) -> Iterator[tuple[tuple[str, str], Vectors]]:
        """Uses (N, layers, width) in every way: the name of the way, and vectors (N, width) of length 1."""
        for mix, numbers in self.mixes.items():
            values = uses[:, numbers].mean(axis=1)
            for name, way in self._spaces[mix].items():
                yield (mix, name), way(values)

    def vectors(self, uses: Sequence[Use]) -> Vectors:
        """(uses, layers, width)."""
        parts = []
        for at in range(0, len(uses), BATCH_SENTENCES):
            some = uses[at : at + BATCH_SENTENCES]
            layers = self.elmo.layers([sentence for sentence, _ in some])
            parts += [values[:, place].mean(axis=1) for values, (_, place) in zip(layers, some, strict=True)]
        return np.stack(parts)

    def cosines(self, a: Sequence[Use], b: Sequence[Use]) -> dict[tuple[str, str], Vectors]:
        """The cosine of each pair, in every way."""
        pairs = zip(self.each(self.vectors(a)), self.each(self.vectors(b)), strict=True)
        return {way: (one * other).sum(axis=1) for (way, one), (_, other) in pairs}


def lines(path: Path) -> list[str]:
    with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


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


def wic(ways: Ways, every: int) -> Rows:
    """Test accuracy with a threshold from the training pairs, and the area under the curve."""
    scores, labels = {}, {}
    for part, name in (("train", "train.data.txt.xz"), ("test", "test.data.txt")):
        uses: tuple[list[Use], list[Use]] = [], []
        for line in lines(found("wic", name)):
            _, _, places, *sentences = line.split("\t")
            for side, place, sentence in zip(uses, map(int, places.split("-")), sentences, strict=True):
                side.append((sentence.split(" "), slice(place, place + 1)))
        scores[part] = ways.cosines(*uses)
        labels[part] = np.array([line == "T" for line in lines(found("wic", f"{part}.gold.txt"))])
    accuracy, area = {}, {}
    for way, values in scores["test"].items():
        threshold = best_threshold(scores["train"][way], labels["train"])
        accuracy[way] = float(((values > threshold) == labels["test"]).mean())
        area[way] = area_under_curve(values, labels["test"])
    return {"WiC, accuracy": accuracy, "WiC, area under the curve": area}


def scws(ways: Ways, every: int) -> Rows:
    """Spearman correlation with the mean rating."""
    rows = [line.split("\t") for line in lines(found("scws", "ratings.txt.xz"))]
    cosines = ways.cosines(*([marked(row[column]) for row in rows] for column in (5, 6)))
    ratings = [float(row[7]) for row in rows]
    return {"SCWS, Spearman": {way: float(spearmanr(values, ratings)[0]) for way, values in cosines.items()}}


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


def cosimlex(ways: Ways, every: int) -> Rows:
    """How well cosines, and their changes between two contexts, follow the ratings."""
    head, *rest = [line.split("\t") for line in lines(found("cosimlex", "cosimlex_en.tsv.xz"))]
    rows = [dict(zip(head, row, strict=True)) for row in rest]
    cosines = []
    for context in ("context1", "context2"):
        words = ([strong(row[context], row[f"word{k}_{context}"]) for row in rows] for k in (1, 2))
        cosines.append(ways.cosines(*words))
    ratings = np.array([[float(row["sim1"]), float(row["sim2"])] for row in rows])
    change, level = {}, {}
    for way in cosines[0]:
        values = np.stack([cosines[0][way], cosines[1][way]], axis=1)
        moved, wanted = values[:, 1] - values[:, 0], ratings[:, 1] - ratings[:, 0]
        change[way] = float((moved * wanted).sum() / np.sqrt((moved**2).sum() * (wanted**2).sum()))
        level[way] = float(spearmanr(values.ravel(), ratings.ravel())[0])
    return {"CoSimLex, change": change, "CoSimLex, Spearman": level}


def strong(context: str, word: str) -> Use:
    """The sentence in which a word stands in <strong>, and its place there."""
    begin = context.index(f"<strong>{word}</strong>")
    before = english(context[:begin].replace("<strong>", "").replace("</strong>", ""))
    after = english(context[begin:].replace("<strong>", "").replace("</strong>", ""))
    left = before[-1] if before and before[-1][-1] not in ".!?" else []
    inside = [token for sentence in english(word) for token in sentence]
    return [*left, *after[0]], slice(len(left), len(left) + len(inside))


def semcor(every: int) -> list[tuple[list[str], list[tuple[slice, str]]]]:
    """Every so many sentences of SemCor: their words, and the places and senses of those that have one."""
    sentences = []
    for line in lines(found("senses", "semcor.jsonl.xz"))[::every]:
        entry = json.loads(line)
        words: list[str] = []
        senses = []
        for token, sense in zip(entry["words"], entry["senses"], strict=True):
            parts = token.split("_")
            if sense is not None:
                senses.append((slice(len(words), len(words) + len(parts)), sense))
            words += parts
        sentences.append((words, senses))
    return sentences


def lemma(sense: str) -> str:
    """The lemma and part of speech of a sense key; adjectives have two digits there."""
    word, _, rest = sense.partition("%")
    return f"{word}%{rest[0].replace('5', '3')}"


def semcor_neighbours(ways: Ways, every: int) -> Rows:
    """Whether the nearest use, of the same lemma or of all, has the same sense."""
    sentences = semcor(every)
    parts = []
    for at in range(0, len(sentences), BATCH_SENTENCES):
        some = sentences[at : at + BATCH_SENTENCES]
        layers = ways.elmo.layers([words for words, _ in some])
        for values, (_, senses) in zip(layers, some, strict=True):
            parts += [values[:, place].mean(axis=1).astype(np.float16) for place, _ in senses]
    vectors = np.stack(parts).astype(np.float32)
    names = np.array([sense for _, senses in sentences for _, sense in senses])
    by_lemma: dict[str, list[int]] = defaultdict(list)
    for number, name in enumerate(names):
        by_lemma[lemma(name)].append(number)
    groups = [np.array(g) for g in by_lemma.values() if len(g) >= LEAST_USES and len(set(names[g])) > 1]
    total = sum(map(len, groups))
    common = sum(Counter(names[group].tolist()).most_common(1)[0][1] for group in groups)
    asked = np.random.default_rng(0).choice(len(names), min(ASKED_USES, len(names)), replace=False)
    same, anywhere = {}, {}
    for way, values in ways.each(vectors):
        right = 0
        for group in groups:
            cosines = values[group] @ values[group].T
            np.fill_diagonal(cosines, -2)
            right += int((names[group][cosines.argmax(axis=1)] == names[group]).sum())
        same[way] = right / total
        cosines = values[asked] @ values.T
        cosines[np.arange(len(asked)), asked] = -2
        anywhere[way] = float((names[cosines.argmax(axis=1)] == names[asked]).mean())
    base = f"SemCor, same lemma ({total:,} uses of {len(groups):,} lemmas; most frequent sense {common / total:.3f})"
    return {base: same, f"SemCor, all words ({len(names):,} uses)": anywhere}


MEASURES = {"wic": wic, "scws": scws, "cosimlex": cosimlex, "semcor": semcor_neighbours}


def section(name: str, measures: Sequence[str], every: int) -> str:
    """The tables of one model: one per way to make vectors comparable."""
    ways = Ways(name)
    rows: Rows = {}
    for measure in measures:
        began = time.perf_counter()
        rows |= MEASURES[measure](ways, every)
        print(f"{measure}: {time.perf_counter() - began:.0f} s", flush=True)
    parts = [f"## {name}\n"]
    for way in ("raw", "centred", "whitened"):
        parts.append(f"| {way} | {' | '.join(ways.mixes)} |")
        parts.append("|---" * (len(ways.mixes) + 1) + "|")
        parts += [
            f"| {what} | {' | '.join(_bold(values, mix, way) for mix in ways.mixes)} |" for what, values in rows.items()
        ]
        parts.append("")
    return "\n".join(parts)


def _bold(values: Mapping[tuple[str, str], float], mix: str, way: str) -> str:
    """A number; the best one of a measure is bold."""
    shown = f"{values[mix, way]:.3f}"
    return f"**{shown}**" if shown == f"{max(values.values()):.3f}" else shown


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--only", default=",".join(MEASURES), help="measures, separated by commas; nothing is saved")
    parser.add_argument("--every", type=int, default=EVERY, help="one of so many sentences of SemCor")
    given = parser.parse_args(arguments)
    measures = given.only.split(",")
    command = f"python benchmarks/quality/senses.py {' '.join(given.models)}"
    parts = [f"# Uses of words, by layer\n\n{date.today()}, made by `{command}`. The best of each row group is bold.\n"]
    for name in given.models:
        parts.append(section(name, measures, given.every))
        print(parts[-1], flush=True)
    if measures == list(MEASURES) and given.every == EVERY:
        (RESULTS / "senses.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()

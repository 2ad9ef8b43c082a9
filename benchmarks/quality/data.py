"""The task data to measure with, and what others reached on it."""

from __future__ import annotations

import os
import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bilmo.tasks.core import examples
from bilmo.tasks.core.examples import Examples

DATA = Path(os.environ.get("BILMO_DATA", Path(__file__).parents[3] / "shared" / "data"))
VECTORS = DATA / "vectors" / "glove.6B.50d.top50k.txt.xz"


@dataclass(frozen=True)
class DataSet:
    """One task's data."""

    name: str
    task: str
    train: Examples
    dev: Examples | None
    test: Examples


PUBLISHED = {
    "sst5": (
        0.327,
        "mean of word vectors, trained on phrases too (VecAvg, Socher et al. 2013); "
        "the ELMo paper's own baseline, BCN with CoVe, on phrases too, had 0.514",
    ),
    "trec": (0.928, "CNN, word2vec of 300, static (Kim 2014)"),
    "wnut17": (0.4078, "BiLSTM-CRF with transfer learning, SpinningBytes in the shared task (2017)"),
    "ud_english_ewt": (0.9540, "Stanza, from raw text (Qi et al. 2020)"),
}
"""Figures of like models without ELMo. There is none for wikigold: everybody cuts it in another way."""


def found(*parts: str) -> Path:
    path = DATA.joinpath("tasks", *parts)
    if not path.exists():
        sys.exit(
            f"This benchmark needs {path}, which is not there. Set BILMO_DATA to a folder with tasks/ and vectors/."
        )
    return path


def sst5() -> DataSet:
    train, dev, test = (
        examples.read("classify", found("sst5", f"stsa.fine.{part}"), form="space") for part in ("train", "dev", "test")
    )
    return DataSet("sst5", "classify", train, dev, test)


def trec() -> DataSet:
    parts = []
    for part in ("train", "test"):
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
            file.write(found("trec", f"TREC.{part}.all").read_text("latin-1"))  # it is not UTF-8
            file.flush()
            parts.append(examples.read("classify", Path(file.name), form="space"))
    return DataSet("trec", "classify", parts[0], None, parts[1])


def wnut17() -> DataSet:
    names = ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated")
    train, dev, test = (examples.read("tag", found("wnut17", name), form="conll") for name in names)
    return DataSet("wnut17", "tag", train, dev, test)


def wikigold() -> DataSet:
    """One file, cut 80 / 10 / 10 with a fixed seed."""
    tokens, tags = examples.read("tag", found("wikigold", "wikigold.conll.txt"), form="conll")
    order = list(range(len(tokens)))
    random.Random(1).shuffle(order)
    cuts = (
        order[: len(order) * 8 // 10],
        order[len(order) * 8 // 10 : len(order) * 9 // 10],
        order[len(order) * 9 // 10 :],
    )
    train, dev, test = (([tokens[k] for k in cut], [tags[k] for k in cut]) for cut in cuts)
    return DataSet("wikigold", "tag", train, dev, test)


def ewt() -> DataSet:
    train, dev, test = (
        examples.read("tag", found("ud_english_ewt", f"en_ewt-ud-{part}.conllu.xz"), column="upos")
        for part in ("train", "dev", "test")
    )
    return DataSet("ud_english_ewt", "tag", train, dev, test)


SETS = {"sst5": sst5, "trec": trec, "wnut17": wnut17, "wikigold": wikigold, "ud_english_ewt": ewt}


def slice_of(data: DataSet, number: int | None) -> DataSet:
    """The first so many examples, and a quarter as many to judge and to test by; None is all."""
    if number is None:
        return data

    def cut(some: Examples, most: int) -> Examples:
        return some[0][:most], some[1][:most]

    few = max(1, number // 4)
    dev = cut(data.dev, few) if data.dev else None
    return DataSet(data.name, data.task, cut(data.train, number), dev, cut(data.test, few))

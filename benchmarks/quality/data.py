"""The data sets to measure with, and published results on them."""

from __future__ import annotations

import os
import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bilmo.tasks.answer.task import ANSWER_TASK
from bilmo.tasks.classify.task import CLASSIFY
from bilmo.tasks.core.settings import check_settings
from bilmo.tasks.core.spec import AnyTask, Dataset
from bilmo.tasks.coref.task import COREF
from bilmo.tasks.entail.task import ENTAIL
from bilmo.tasks.relate.task import RELATE
from bilmo.tasks.roles.task import ROLES
from bilmo.tasks.tag.task import TAG

DATA = Path(os.environ.get("BILMO_DATA", Path(__file__).parents[3] / "shared" / "data"))
VECTORS = DATA / "vectors" / "glove.6B.50d.top50k.txt.xz"
Examples = Dataset[Any, Any]


@dataclass(frozen=True)
class DataSet:
    """Examples to train on, to evaluate on, and to measure on."""

    name: str
    train: Examples
    dev: Examples | None
    test: Examples


PUBLISHED = {
    "sst5": (
        0.327,
        "mean of word vectors, trained on phrases too (VecAvg, Socher et al. 2013); "
        "the ELMo paper's own baseline, BCN with CoVe, on phrases too, had 0.514",
    ),
    "trec": (0.928, "CNN, word2vec of width 300, static (Kim 2014)"),
    "wnut17": (0.4078, "BiLSTM-CRF with transfer learning, SpinningBytes in the shared task (2017)"),
    "ud_english_ewt": (0.9540, "Stanza, from raw text (Qi et al. 2020)"),
    "sick": (
        0.808,
        "an LSTM over both sentences, trained on SNLI first (Bowman et al. 2015); the best system of the shared task, "
        "with features made by hand, had 0.846 (Lai and Hockenmaier 2014)",
    ),
    "relations": (0.840, "BiLSTM with attention, GloVe of width 100 (Att-BLSTM, Zhou et al. 2016)"),
}
"""Results of comparable models without ELMo. There is none for wikigold, which every paper splits in another way, none
for roles, whose words are not those of the published data, none for this part of SQuAD, and none for this split of
LitBank."""


def found(*parts: str) -> Path:
    path = DATA.joinpath("tasks", *parts)
    if not path.exists():
        sys.exit(
            f"This benchmark needs {path}, which does not exist. Set BILMO_DATA to a folder with tasks/ and vectors/."
        )
    return path


def read(task: AnyTask, path: Path, form: str = "auto", **settings: Any) -> Examples:
    return task.read(path, form, check_settings(settings, task.settings))


def sst5() -> DataSet:
    train, dev, test = (
        read(CLASSIFY, found("sst5", f"stsa.fine.{part}"), "space") for part in ("train", "dev", "test")
    )
    return DataSet("sst5", train, dev, test)


def trec() -> DataSet:
    parts = []
    for part in ("train", "test"):
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
            file.write(found("trec", f"TREC.{part}.all").read_text("latin-1"))  # it is not UTF-8
            file.flush()
            parts.append(read(CLASSIFY, Path(file.name), "space"))
    return DataSet("trec", parts[0], None, parts[1])


def wnut17() -> DataSet:
    names = ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated")
    train, dev, test = (read(TAG, found("wnut17", name), "conll") for name in names)
    return DataSet("wnut17", train, dev, test)


def wikigold() -> DataSet:
    """One file, split 80 / 10 / 10 with a fixed seed."""
    tokens, tags, *_ = read(TAG, found("wikigold", "wikigold.conll.txt"), "conll")
    order = list(range(len(tokens)))
    random.Random(1).shuffle(order)
    cuts = (
        order[: len(order) * 8 // 10],
        order[len(order) * 8 // 10 : len(order) * 9 // 10],
        order[len(order) * 9 // 10 :],
    )
    train, dev, test = (Dataset([tokens[k] for k in cut], [tags[k] for k in cut], "conll") for cut in cuts)
    return DataSet("wikigold", train, dev, test)


def ewt() -> DataSet:
    train, dev, test = (
        read(TAG, found("ud_english_ewt", f"en_ewt-ud-{part}.conllu.xz"), column="upos")
        for part in ("train", "dev", "test")
    )
    return DataSet("ud_english_ewt", train, dev, test)


def sick() -> DataSet:
    names = ("SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt")
    return DataSet("sick", *(read(ENTAIL, found("sick", name)) for name in names))


def relations() -> DataSet:
    """The test set is the official one; there is no official dev set."""
    train, test = (read(RELATE, found("relations", f"{part}.txt")) for part in ("train", "test"))
    return DataSet("relations", train, None, test)


def squad() -> DataSet:
    """There is no test set: the dev set, which has other articles, is measured, and training splits off its own."""
    train, dev = (read(ANSWER_TASK, found("squad", f"{part}.json.xz")) for part in ("train", "dev"))
    return DataSet("squad", train, None, dev)


def roles() -> DataSet:
    """The predicates are marked."""
    return DataSet("roles", *(read(ROLES, found("roles", f"{part}.jsonl.xz")) for part in ("train", "dev", "test")))


def coref() -> DataSet:
    """The openings of 100 novels, with clusters of one mention."""
    parts = (read(COREF, found("coref_litbank", f"{part}.conll.xz")) for part in ("train", "dev", "test"))
    return DataSet("coref", *parts)


SETS = {
    "sst5": sst5,
    "trec": trec,
    "wnut17": wnut17,
    "wikigold": wikigold,
    "ud_english_ewt": ewt,
    "sick": sick,
    "relations": relations,
    "squad": squad,
    "roles": roles,
    "coref": coref,
    "layers": ewt,
}


def share_of(some: Examples, share: float) -> Examples:
    """A random share of the examples; a larger share contains a smaller one."""
    order = list(range(len(some.examples)))
    random.Random(1).shuffle(order)
    chosen = sorted(order[: max(1, round(share * len(order)))])
    return Dataset([some.examples[k] for k in chosen], [some.answers[k] for k in chosen], some.form)


def slice_of(data: DataSet, number: int | None) -> DataSet:
    """The first `number` examples, and a quarter as many for dev and test; None is all."""
    if number is None:
        return data

    def cut(some: Examples, most: int) -> Examples:
        return Dataset(some.examples[:most], some.answers[:most], some.form)

    few = max(1, number // 4)
    dev = cut(data.dev, few) if data.dev else None
    return DataSet(data.name, cut(data.train, number), dev, cut(data.test, few))

"""Entailment learns what can be learned, predicts the same in any batch, and keeps the manners of all estimators."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
import sklearn.base
import sklearn.metrics
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bilmo
from bilmo.errors import TextError
from bilmo.store.vectors_file import Vectors
from bilmo.tasks import folder
from bilmo.tasks.core.events import Epoch
from bilmo.tasks.core.spec import Dataset
from bilmo.tasks.entail.entailment import Entailment
from bilmo.tasks.entail.task import MOST_TOKENS

from task_data import ANIMALS, COLOURS, REST, made, pairs

SMALL = {"hidden": 12, "dropout": 0.0, "rate": 0.02, "batch": 16}
NONSENSE = [f"w{k}" for k in range(80)]
WIDE = Vectors(NONSENSE, np.random.default_rng(0).normal(size=(80, 24)).astype(np.float32))


@pytest.mark.parametrize("elmo_at", ["input", "output", "both", "none"])
def test_the_head_overfits_fifty_pairs(tiny, elmo_at):
    draw = random.Random(3)
    some = [tuple(draw.sample(NONSENSE, k=draw.randint(1, 6)) for _ in range(2)) for _ in range(50)]
    labels = [draw.choice("xyz") for _ in some]
    memorise = {"hidden": 24, "dropout": 0.0, "rate": 0.02, "batch": 50, "epochs": 80, "patience": 80}
    task = Entailment(tiny, vectors=WIDE, elmo_at=elmo_at, **memorise)
    events = task.events(Dataset(some, labels), dev=Dataset(some, labels))
    assert any(isinstance(event, Epoch) and event.value == 1.0 for event in events)


def test_it_learns_what_both_texts_say_together(tiny):
    """A third of the labels depends on the second text alone, so that one text is not enough for more than 2 / 3."""
    task = Entailment(tiny, vectors="scratch", **SMALL, epochs=25, patience=25)
    assert task.fit(*pairs(240)).score(*pairs(60, seed=1)) > 0.75


@pytest.fixture(scope="module")
def unfitted():
    """Random weights, so that predictions differ clearly; by where ELMo is."""
    elmo = bilmo.Embedder(made(0))
    found = {}
    for at in ("input", "output", "both", "none"):
        task = Entailment(elmo, vectors="scratch", elmo_at=at, chars=3, **SMALL, epochs=1)
        found[at] = task.fit(*pairs(20))
        with torch.no_grad():
            for parameter in task.network_.head.parameters():
                parameter.copy_(torch.randn_like(parameter) * 0.5)
    return found


TEXTS = st.lists(st.sampled_from([*ANIMALS, *COLOURS, *REST, "漢字"]), max_size=9)


@settings(max_examples=25)
@given(
    some=st.lists(st.tuples(TEXTS, TEXTS), min_size=2, max_size=6),
    at=st.sampled_from(["input", "output", "both", "none"]),
)
def test_padding_changes_no_prediction(unfitted, some, at):
    task = unfitted[at]
    together = task.predict_proba(some)
    alone = np.concatenate([task.predict_proba([pair]) for pair in some])
    # Layers are kept as float16, so a difference in the last bit of float32 can become one of 1e-3.
    assert np.allclose(together, alone, atol=2e-3)
    assert np.allclose(together, task.predict_proba(some[::-1])[::-1], atol=2e-3)


def test_elmo_is_mixed_where_it_is_asked_for(unfitted):
    assert {at: [mix.where for mix in task.mixes_] for at, task in unfitted.items()} == {
        "input": ["input"], "output": ["output"], "both": ["input", "output"], "none": []
    }  # fmt: skip


def test_each_text_and_their_order_count(unfitted):
    task = unfitted["both"]
    found = task.predict_proba(
        [("cat saw", "dog"), ("dog", "cat saw"), ("cat saw", "cow"), ("cat", "dog"), ("", "dog")]
    )
    assert len({tuple(row.round(4)) for row in found}) == 5


def test_saved_pickled_and_cloned(tiny, tmp_path):
    some, new = pairs(24), pairs(9, seed=1)[0]
    task = Entailment(tiny, vectors="scratch", elmo_at="both", **SMALL, epochs=2).fit(*some)
    folder.save(task, tmp_path / "task")
    loaded = folder.load(tmp_path / "task", elmo=tiny)
    assert type(loaded) is Entailment and loaded.labels_ == ["contradiction", "entailment", "neutral"]
    for other in (loaded, pickle.loads(pickle.dumps(task))):
        assert np.array_equal(other.predict_proba(new), task.predict_proba(new))
    copy = sklearn.base.clone(task)
    assert copy.get_params() == task.get_params() and not hasattr(copy, "network_")
    assert sklearn.base.is_classifier(task)
    assert list(task.classes_[task.predict_proba(new).argmax(axis=1)]) == list(task.predict(new))


def test_labels_keep_their_type(tiny):
    some, labels = pairs(18)
    numbers = [{"entailment": 2, "neutral": 1, "contradiction": 0}[label] for label in labels]
    task = Entailment(tiny, **SMALL, epochs=1).fit(np.array(some), np.array(numbers))
    assert task.predict(some).dtype.kind == "i" and task.labels_ == [0, 1, 2]


def test_the_measure_agrees_with_scikit_learn(tiny):
    task = Entailment(tiny, **SMALL, epochs=2).fit(*pairs(30))
    some, true = pairs(30, seed=2)
    answers = task.predict(some)
    found = task.prepared_.measure(true, answers.tolist())
    assert found.name == "accuracy" and found.value == sklearn.metrics.accuracy_score(true, answers)
    assert task.score(some, true) == found.value
    names = ["contradiction", "entailment", "neutral"]
    by_class = sklearn.metrics.precision_recall_fscore_support(true, answers, labels=names, zero_division=0)
    for row, *expected in zip(found.labels, *by_class, strict=True):
        assert [row.precision, row.recall, row.f1, row.true] == pytest.approx(expected)
    confusion = sklearn.metrics.confusion_matrix(true, answers, labels=names)
    assert confusion.tolist() == [[found.confusion.get((a, b), 0) for b in names] for a in names]


def test_chinese_is_split_into_words(tiny):
    some = [("一个人在北京天安门睡觉。", "有人在睡觉。"), ("他不喜欢这本书。", "他很喜欢书。")] * 5
    task = Entailment(tiny, **SMALL, epochs=1).fit(some, ["entailment", "contradiction"] * 5)
    assert task.lang_ == "zh"
    (item,) = task.prepared_.items([("他在北京。", ["他", "在"])])
    assert "北京" in item.first[0] and item.second == [["他", "在"]]
    assert task.predict([("北京很大", "")]).shape == (1,)


def test_words_of_a_dictionary_stay_whole(tiny, tmp_path):
    (tmp_path / "words.txt").write_text("看见怪兽\n", encoding="utf-8")
    some = [("猫看见怪兽。", "没有猫。"), ("猫跑。", "狗跑。")] * 4
    for dictionary, whole in ((str(tmp_path / "words.txt"), True), (None, False)):
        task = Entailment(tiny, **SMALL, epochs=1, dictionary=dictionary).fit(some, ["x", "y"] * 4)
        assert any("看见怪兽" in sentence for sentence in task.prepared_.items(some[:1])[0].first) is whole


def test_a_text_that_is_too_long_is_refused(tiny):
    task = Entailment(tiny, **SMALL, epochs=1).fit(*pairs(12))
    long = ["cat"] * (MOST_TOKENS + 1)
    with pytest.raises(TextError, match=r"pair 2: one of its texts has 5,001 tokens; at most 5,000 can be aligned"):
        task.predict([("a", "b"), ("a", long)])
    assert task.predict([(long[1:], "cat")]).shape == (1,)


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        (["ab", "cd"], r"pair 1 is 'ab'; each example must be two texts"),
        ([("a", "b"), ("a", "b", "c")], r"pair 2 is \('a', 'b', 'c'\); each example must be two texts"),
        ([("a", "b"), 3], r"pair 2 is 3; each example"),
        ([("a", "b"), (["a", 3], "b")], "must be"),
    ],
)
def test_examples_that_are_not_pairs(tiny, examples, message):
    with pytest.raises(TextError, match=message):
        Entailment(tiny, **SMALL).fit(examples, ["x", "y"], dev=([("a", "b")], ["x"]))

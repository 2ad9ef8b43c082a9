"""Relations learns what can be learned, predicts the same in any batch, and keeps the manners of all estimators."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
import sklearn.base
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bilmo
from bilmo.errors import TextError
from bilmo.store.vectors_file import Vectors
from bilmo.tasks import folder
from bilmo.tasks.core.events import Epoch
from bilmo.tasks.core.spec import Dataset
from bilmo.tasks.relate.head import FARTHEST, distances
from bilmo.tasks.relate.relations import Relations

from task_data import ANIMALS, COLOURS, REST, made, related

SMALL = {"hidden": 12, "dropout": 0.0, "rate": 0.02, "batch": 16}
PLACES = ("input", "output", "both", "none")
NONSENSE = [f"w{k}" for k in range(80)]
WIDE = Vectors(NONSENSE, np.random.default_rng(0).normal(size=(80, 24)).astype(np.float32))


@pytest.mark.parametrize("elmo_at", PLACES)
def test_the_head_overfits_fifty_texts(tiny, elmo_at):
    draw = random.Random(3)
    some = []
    for _ in range(50):
        words = draw.sample(NONSENSE, k=draw.randint(2, 7))
        first, second = draw.sample(range(len(words)), 2)
        some.append((words, (first, first + 1), (second, second + 1)))
    labels = [draw.choice(["A-B(e1,e2)", "A-B(e2,e1)", "Other"]) for _ in some]
    memorise = {"hidden": 24, "dropout": 0.0, "rate": 0.02, "batch": 50, "epochs": 80, "patience": 80}
    task = Relations(tiny, vectors=WIDE, elmo_at=elmo_at, **memorise)
    events = task.events(Dataset(some, labels), dev=Dataset(some, labels))
    assert any(isinstance(event, Epoch) and event.value == 1.0 for event in events)


def test_it_learns_which_spans_are_marked(tiny):
    """Every text has an animal and a colour that are not marked."""
    task = Relations(tiny, vectors="scratch", **SMALL, epochs=20, patience=20)
    assert task.fit(*related(160)).score(*related(60, seed=1)) > 0.8


@pytest.fixture(scope="module")
def unfitted():
    """Random weights, so that predictions differ clearly; by where ELMo is."""
    elmo = bilmo.Embedder(made(0))
    found = {}
    for at in PLACES:
        task = Relations(elmo, vectors="scratch", elmo_at=at, chars=3, **SMALL, epochs=1)
        found[at] = task.fit(*related(20))
        with torch.no_grad():
            for parameter in task.network_.head.parameters():
                parameter.copy_(torch.randn_like(parameter) * 0.5)
    return found


@st.composite
def examples(draw):
    words = draw(st.lists(st.sampled_from([*ANIMALS, *COLOURS, *REST, "漢字"]), min_size=1, max_size=9))
    first, second = (draw(st.integers(0, len(words) - 1)) for _ in "12")
    return words, (first, first + 1), (second, second + 1)


@settings(max_examples=25)
@given(some=st.lists(examples(), min_size=2, max_size=6), at=st.sampled_from(PLACES))
def test_padding_changes_no_prediction(unfitted, some, at):
    task = unfitted[at]
    together = task.predict_proba(some)
    alone = np.concatenate([task.predict_proba([one]) for one in some])
    # Layers are kept as float16, so a difference in the last bit of float32 can become one of 1e-3.
    assert np.allclose(together, alone, atol=2e-3)
    assert np.allclose(together, task.predict_proba(some[::-1])[::-1], atol=2e-3)


def test_the_places_and_the_order_of_the_spans_count(unfitted):
    text = "the cat saw a dog and a cow"
    spans = [((4, 7), (14, 17)), ((14, 17), (4, 7)), ((4, 7), (24, 27)), ((4, 11), (14, 17))]
    found = unfitted["both"].predict_proba([(text, *pair) for pair in spans])
    assert len({tuple(row.round(4)) for row in found}) == 4


def test_marks_and_spans_give_the_same_prediction(unfitted):
    same = [
        "the <e1>cat</e1> saw a <e2>dog .</e2>",
        ("the cat saw a dog .", (4, 7), (14, 19)),
        ("the cat saw a dog .".split(), (1, 2), (4, 6)),
    ]
    first, *rest = unfitted["both"].predict_proba(same)
    assert all(np.allclose(first, row, atol=2e-3) for row in rest)


def test_positions():
    assert (distances([(1, 3), (0, 1)], 5) - FARTHEST).tolist() == [[-1, 0, 0, 1, 2], [0, 1, 2, 3, 4]]
    (far,) = (distances([(100, 101)], 300) - FARTHEST).tolist()
    assert (far[0], far[99], far[100], far[101], far[299]) == (-FARTHEST, -1, 0, 1, FARTHEST)


def test_saved_pickled_and_cloned(tiny, tmp_path):
    new = related(9, seed=1)[0]
    task = Relations(tiny, vectors="scratch", elmo_at="both", **SMALL, epochs=2).fit(*related(24))
    folder.save(task, tmp_path / "task")
    loaded = folder.load(tmp_path / "task", elmo=tiny)
    assert type(loaded) is Relations and loaded.labels_ == ["Has-Colour(e1,e2)", "Has-Colour(e2,e1)", "Other"]
    for other in (loaded, pickle.loads(pickle.dumps(task))):
        assert np.array_equal(other.predict_proba(new), task.predict_proba(new))
    copy = sklearn.base.clone(task)
    assert copy.get_params() == task.get_params() and not hasattr(copy, "network_")
    assert list(task.classes_[task.predict_proba(new).argmax(axis=1)]) == list(task.predict(new))


def test_chinese_is_split_into_words(tiny):
    some = ["<e1>北京</e1>是<e2>中国</e2>的首都。", "<e1>他</e1>不喜欢这本<e2>书</e2>。"] * 5
    task = Relations(tiny, **SMALL, epochs=1).fit(some, ["首都(e1,e2)", "Other"] * 5)
    assert task.lang_ == "zh"
    (item,) = task.prepared_.items(["他在<e1>北京</e1>看<e2>书</e2>。"])
    tokens = [token for sentence in item.text for token in sentence]
    assert tokens[slice(*item.first)] == ["北京"] and "书" in tokens[slice(*item.second)][0]


def test_words_of_a_dictionary_stay_whole(tiny, tmp_path):
    (tmp_path / "words.txt").write_text("看见怪兽\n", encoding="utf-8")
    some = ["<e1>猫</e1>看见<e2>怪兽</e2>。", "<e1>猫</e1>和<e2>狗</e2>。"] * 4
    for dictionary, whole in ((str(tmp_path / "words.txt"), True), (None, False)):
        task = Relations(tiny, **SMALL, epochs=1, dictionary=dictionary).fit(some, ["x", "y"] * 4)
        assert any("看见怪兽" in sentence for sentence in task.prepared_.items(some[:1])[0].text) is whole


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ("no marks", "text 2: the mark <e1> is missing: 'no marks'"),
        (("a b", (0, 1), (2, 9)), r"text 2: e2 is \[2, 9\]; it must be a part of the text"),
        (None, "text 2: is None; it must be a string with the marks"),
    ],
)
def test_mistakes_name_the_text(tiny, example, message):
    good = "<e1>a</e1> <e2>b</e2>"
    with pytest.raises(TextError, match=message):
        Relations(tiny, **SMALL).fit([good, example], ["x", "y"])
    task = Relations(tiny, **SMALL, epochs=1).fit([good, f"the {good}"] * 4, ["x", "y"] * 4)
    with pytest.raises(TextError, match=message):
        task.predict([good, example])

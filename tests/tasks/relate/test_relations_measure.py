"""The measure agrees with results worked out by hand as the official scorer does, and with scikit-learn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from bilmo.tasks.relate.measure import by_relation, relation_of

# Two relations and Other; the numbers of the sentences and the labels, as in the files of the official scorer.
KEY = """1\tCause-Effect(e1,e2)
2\tCause-Effect(e1,e2)
3\tCause-Effect(e2,e1)
4\tCause-Effect(e2,e1)
5\tMessage-Topic(e1,e2)
6\tMessage-Topic(e1,e2)
7\tOther
8\tOther
9\tOther
10\tMessage-Topic(e2,e1)"""
PROPOSED = """1\tCause-Effect(e1,e2)
2\tCause-Effect(e2,e1)
3\tCause-Effect(e2,e1)
4\tOther
5\tMessage-Topic(e1,e2)
6\tCause-Effect(e1,e2)
7\tOther
8\tMessage-Topic(e1,e2)
9\tProduct-Producer(e1,e2)
10\tMessage-Topic(e2,e1)"""


def labels(text):
    return [line.split("\t")[1] for line in text.splitlines()]


def test_by_hand():
    found = by_relation(labels(KEY), labels(PROPOSED))
    rows = {row.label: (row.correct, row.predicted, row.true) for row in found.labels}
    assert rows == {
        "Cause-Effect": (2, 4, 4),  # sentence 2 has the wrong direction: predicted, but not correct
        "Message-Topic": (2, 3, 3),
        "Other": (1, 2, 3),
        "Product-Producer": (0, 1, 0),  # not among the true relations: no part of the mean
    }
    # P = (2/4 + 2/3) / 2, R = (2/4 + 2/3) / 2, F1 = (1/2 + 2/3) / 2
    assert found.name == "macro F1" and found.value == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert dict(found.details) == pytest.approx({"macro precision": 7 / 12, "macro recall": 7 / 12, "accuracy": 5 / 10})
    assert found.confusion[("Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)")] == 1


def test_the_mean_of_f1_is_not_the_f1_of_the_means():
    found = by_relation(["A-B(e1,e2)"] * 3 + ["C-D(e1,e2)"], ["A-B(e1,e2)", "Other", "Other", "C-D(e1,e2)"])
    assert found.value == pytest.approx((1 / 2 + 1) / 2)
    assert dict(found.details)["macro precision"] == 1 and dict(found.details)["macro recall"] == pytest.approx(2 / 3)


def test_borders():
    assert by_relation([], []).value == 0
    assert (
        by_relation(["Other"], ["Other"]).value == 0
        and dict(by_relation(["Other"], ["Other"]).details)["accuracy"] == 1
    )
    assert by_relation(["no_relation", "x"], ["no_relation", "x"]).value == 1  # labels without directions
    assert relation_of("per:title(e2,e1)") == "per:title" and relation_of("f(x)") == "f(x)"


LABEL = st.sampled_from(["Other", *(f"{name}({way})" for name in ("A-B", "C-D", "E-F") for way in ("e1,e2", "e2,e1"))])


@given(st.lists(st.tuples(LABEL, LABEL) | LABEL.map(lambda label: (label, label)), min_size=1, max_size=30))
def test_it_agrees_with_scikit_learn(pairs):
    """A wrong direction is split into a true relation that is missed and a predicted one that is wrong."""
    true, predicted = [], []
    for t, p in pairs:
        a, b = relation_of(t), relation_of(p)
        if a == b and t != p:
            true, predicted = [*true, a, "Other"], [*predicted, "Other", a]
        else:
            true, predicted = [*true, a], [*predicted, b]
    names = sorted({relation_of(t) for t, _ in pairs} - {"Other"})
    found = by_relation([t for t, _ in pairs], [p for _, p in pairs])
    assert dict(found.details)["accuracy"] == pytest.approx(accuracy_score(*zip(*pairs, strict=True)))
    if not names:
        assert found.value == 0
        return
    each = precision_recall_fscore_support(true, predicted, labels=names, zero_division=0)
    rows = {row.label: row for row in found.labels}
    for name, precision, recall, f1, count in zip(names, *each, strict=True):
        row = rows[name]
        assert [row.precision, row.recall, row.f1, row.true] == pytest.approx([precision, recall, f1, count])
    mean = precision_recall_fscore_support(true, predicted, labels=names, zero_division=0, average="macro")
    value, details = found.value, dict(found.details)
    assert [details["macro precision"], details["macro recall"], value] == pytest.approx(mean[:3])

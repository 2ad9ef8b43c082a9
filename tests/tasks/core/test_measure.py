"""Measures agree with seqeval and scikit-learn."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import accuracy_score, classification_report, f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import get_entities
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from bilmo.tasks.core.measure import by_label, by_span, by_token
from bilmo.tasks.data import spans

ANY_TAG = st.sampled_from(["O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in ("PER", "LOC"))])
IOB_TAG = st.sampled_from(["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "I-x-y"])


@pytest.fixture(autouse=True)
def warnings_of_seqeval():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@given(st.lists(ANY_TAG, max_size=12))
def test_spans_agree_with_conlleval(tags):
    assert spans.spans(tags) == [tuple(entity) for entity in get_entities(tags)]


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("O I-A I-A O", [("A", 1, 2)]),
        ("I-A B-A I-A", [("A", 0, 0), ("A", 1, 2)]),
        ("B-A I-B I-B", [("A", 0, 0), ("B", 1, 2)]),
        ("B-A B-A", [("A", 0, 0), ("A", 1, 1)]),
        ("S-A E-A I-A O", [("A", 0, 0), ("A", 1, 1), ("A", 2, 2)]),
        ("B I O B", [("", 0, 1), ("", 3, 3)]),
        ("", []),
    ],
)
def test_spans_by_hand(tags, found):
    assert spans.spans(tags.split()) == found


@st.composite
def answered(draw):
    """True tags and predictions of the same lengths, some of them correct."""
    true = draw(st.lists(st.lists(IOB_TAG, min_size=1, max_size=8), min_size=1, max_size=5))
    answers = [[draw(st.just(tag) | IOB_TAG) for tag in tags] for tags in true]
    return true, answers


@given(answered())
def test_span_f1_agrees_with_seqeval(both):
    true, answers = both
    found = by_span(true, answers)
    assert found.value == pytest.approx(f1_score(true, answers, zero_division=0))
    facts = dict(found.details)
    assert facts["precision"] == pytest.approx(precision_score(true, answers, zero_division=0))
    assert facts["recall"] == pytest.approx(recall_score(true, answers, zero_division=0))
    assert facts["token accuracy"] == pytest.approx(accuracy_score(true, answers))
    report = (
        classification_report(true, answers, output_dict=True, zero_division=0) if any(map(spans.spans, true)) else {}
    )
    for row in found.labels:
        if row.label in report:
            theirs = report[row.label]
            ours = {"precision": row.precision, "recall": row.recall, "f1-score": row.f1, "support": row.true}
            assert ours == pytest.approx(theirs)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abce")), min_size=1, max_size=30))
def test_measures_per_label_agree_with_scikit_learn(pairs):
    true, answers = [t for t, _ in pairs], [a for _, a in pairs]
    found = by_label(true, answers)
    names = [row.label for row in found.labels]
    assert names == sorted({*true, *answers})
    precision, recall, f1, support = precision_recall_fscore_support(true, answers, labels=names, zero_division=0)
    assert [row.precision for row in found.labels] == pytest.approx(list(precision))
    assert [row.recall for row in found.labels] == pytest.approx(list(recall))
    assert [row.f1 for row in found.labels] == pytest.approx(list(f1))
    assert [row.true for row in found.labels] == list(support)
    macro = precision_recall_fscore_support(true, answers, average="macro", zero_division=0)[:3]
    assert [value for _, value in found.details] == pytest.approx(list(macro))
    table = confusion_matrix(true, answers, labels=names)
    ours = [[found.confusion.get((t, a), 0) for a in names] for t in names]
    assert ours == table.tolist()
    assert found.value == pytest.approx(sum(t == a for t, a in pairs) / len(pairs))


@pytest.mark.parametrize("scheme", ["IOB1", "BIO", "BIOES"])
def test_tokens_are_compared_in_the_scheme_of_the_predictions(scheme):
    true = [["B-A", "I-A", "O", "B-A", "I-A"]]
    answers = [["B-A", "I-A", "O", "B-A", "O"]]
    expected = dict(by_span(true, answers).details)["token accuracy"]
    other = [spans.write(spans.spans(tags), len(tags), scheme) for tags in true]
    assert dict(by_span(other, answers, "BIO").details)["token accuracy"] == expected == 0.8


def test_an_empty_set_has_the_value_0():
    assert by_label([], []).value == 0
    assert by_span([], []).value == 0
    assert by_span([[]], [[]]).value == 0
    assert by_token([["a"], []], [["a"], []]).value == 1

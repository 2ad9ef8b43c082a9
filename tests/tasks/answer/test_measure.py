"""Exact match and F1 against torchmetrics (SQuAD 1.1), and on hand-made questions without an answer (SQuAD 2.0)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torchmetrics.functional.text import squad

from bilmo.tasks.answer.measure import by_answer, f1, normalized

WORDS = st.sampled_from(["the", "A", "an", "cat", "Cat,", "mat.", "U.S.", "café", "漢字", "'s", "Theatre", "-", "x\ty"])
TEXT = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)


@given(st.lists(st.tuples(st.lists(TEXT.filter(normalized), min_size=1, max_size=3), TEXT), min_size=1, max_size=4))
def test_the_same_as_torchmetrics(questions):
    found = by_answer([gold for gold, _ in questions], [text for _, text in questions])
    theirs = squad(
        [{"prediction_text": text, "id": str(k)} for k, (_, text) in enumerate(questions)],
        [
            {"answers": {"text": gold, "answer_start": [0] * len(gold)}, "id": str(k)}
            for k, (gold, _) in enumerate(questions)
        ],
    )
    assert 100 * found.value == pytest.approx(theirs["f1"].item(), abs=1e-3)
    assert 100 * dict(found.details)["exact match"] == pytest.approx(theirs["exact_match"].item(), abs=1e-3)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("The  Cat!", "cat"),
        ("a theatre", "theatre"),
        ("U.S.", "us"),
        ("an-other", "another"),
        ("the", ""),
        ("«a»", "« »"),
    ],
)
def test_what_is_compared(text, same):
    assert normalized(text) == same


def test_questions_without_an_answer():
    """Five questions. With an answer: one exact, one with 2 of 3 and 2 words in common, one not answered.

    Without an answer: one recognized, one answered.
    """
    true = [["Mount Oslo", "Oslo"], ["red big cat"], ["x"], [], []]
    predicted = ["the Oslo", "big cat", "", "", "cat"]
    found = by_answer(true, predicted)
    half = 2 * 2 / (3 + 2)
    assert found.value == pytest.approx((1 + half + 0 + 1 + 0) / 5)
    assert dict(found.details) == pytest.approx(
        {
            "exact match": 2 / 5,
            "exact match, questions with an answer": 1 / 3,
            "F1, questions with an answer": (1 + half) / 3,
            "exact match, questions without an answer": 1 / 2,
            "F1, questions without an answer": 1 / 2,
        }
    )
    rows = {row.label: (row.correct, row.predicted, row.true) for row in found.labels}
    assert rows == {"answer": (2, 3, 3), "no answer": (1, 2, 2)}


def test_edges():
    assert by_answer([], []).value == 0
    assert f1("", "") == 1 and f1("a", "") == 1 and f1("cat", "") == 0
    assert by_answer([["the"]], [""]).value == 1  # nothing is left of this answer, as in the script of SQuAD 2.0

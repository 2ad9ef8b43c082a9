"""MUC, B3 and CEAF-e against scorch, and against cases whose values are known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scorch import scores as scorch

from bilmo.tasks.coref.measure import coref_score

scorch.harmonic_mean = lambda pair: 2 * pair[0] * pair[1] / sum(pair) if sum(pair) else 0.0  # its own fails at 0
ORACLES = {"MUC": scorch.muc, "B3": scorch.b_cubed, "CEAF-e": scorch.ceaf_e}


@st.composite
def partitions(draw):
    """Some mentions in clusters, singletons included."""
    homes = draw(st.lists(st.integers(-1, 5), min_size=10, max_size=10))
    clusters = {}
    for mention, home in enumerate(homes):
        if home >= 0:
            clusters.setdefault(home, []).append((mention, mention))
    return list(clusters.values())


@given(partitions(), partitions())
def test_one_document_agrees_with_scorch(true, predicted):
    details = dict(coref_score([true], [predicted]).details)
    for least, what in ((1, ""), (2, " without singletons")):
        key, response = ([set(c) for c in clusters if len(c) >= least] for clusters in (true, predicted))
        for name, oracle in ORACLES.items():
            if not key or not response:
                assert details[f"{name} F1{what}"] == 0
                continue
            recall, precision, f1 = oracle(key, response)
            found = [details[f"{name} {part}{what}"] for part in ("recall", "precision", "F1")]
            assert found == pytest.approx([recall, precision, f1], abs=1e-9), name


@given(st.lists(st.tuples(partitions(), partitions()), min_size=1, max_size=4))
def test_sums_of_documents_are_taken_before_ratios(documents):
    """Two documents are one document whose mentions do not overlap."""
    joined = [
        [[(100 * n + a, 100 * n + b) for a, b in cluster] for n, pair in enumerate(documents) for cluster in pair[side]]
        for side in (0, 1)
    ]
    apart = coref_score([a for a, _ in documents], [b for _, b in documents])
    whole = coref_score([joined[0]], [joined[1]])
    assert apart.value == pytest.approx(whole.value, abs=1e-9)
    assert dict(apart.details) == pytest.approx(dict(whole.details), abs=1e-9)


def test_values_by_hand():
    """A cluster of four and one of two; the response divides the first in two and misses one mention."""
    true = [[[(0, 0), (1, 1), (2, 2), (3, 3)], [(5, 5), (6, 6)]]]
    predicted = [[[(0, 0), (1, 1)], [(2, 2), (3, 3)], [(6, 6), (7, 7)]]]
    details = dict(coref_score(true, predicted).details)
    assert details["MUC recall"] == pytest.approx(2 / 4)  # 4 - 2 parts, and 2 - 2 parts, of 3 + 1 links
    assert details["MUC precision"] == pytest.approx(2 / 3)
    assert details["B3 recall"] == pytest.approx((4 * 2 / 4 + 1 / 2) / 6)
    assert details["B3 precision"] == pytest.approx((4 * 1 + 1 / 2) / 6)
    assert details["CEAF-e recall"] == pytest.approx((2 * 2 / 6 + 2 * 1 / 4) / 2)
    assert details["CEAF-e precision"] == pytest.approx((2 * 2 / 6 + 2 * 1 / 4) / 3)


def test_right_answers_are_perfect_and_empty_ones_are_zero():
    true = [[[(0, 1), (4, 4)], [(2, 2)]]]
    score = coref_score(true, true)
    assert score.value == 1.0
    assert score.name == "mean F1"
    assert score.labels[0].f1 == 1.0
    assert coref_score(true, [[]]).value == 0.0
    assert coref_score([[]], [[]]).value == 0.0

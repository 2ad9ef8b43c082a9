"""Schemes are recognised, written and read back; legal transitions are those that occur in some sentence."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilmo.tasks.data import spans


@st.composite
def sentences(draw, touching: bool = True):
    """Spans that do not overlap, and the length of their sentence."""
    at, found = 0, []
    for _ in range(draw(st.integers(0, 4))):
        start = at + draw(st.integers(0 if touching else 1, 2))
        end = start + draw(st.integers(0, 2))
        found.append((draw(st.sampled_from(("A", "B-C"))), start, end))
        at = end + 1
    return found, at + draw(st.integers(0, 2))


@given(sentences(), st.sampled_from(("IOB1", "BIO", "BIOES")))
def test_spans_survive_a_round_trip(sentence, scheme):
    found, length = sentence
    tags = spans.write(found, length, scheme)
    assert len(tags) == length
    assert spans.spans(tags) == found


@given(sentences(touching=False))
def test_io_represents_spans_that_do_not_touch(sentence):
    found, length = sentence
    assert spans.spans(spans.write(found, length, "IO")) == found


@given(sentences())
def test_written_bioes_is_legal(sentence):
    found, length = sentence
    tags = ["O", *spans.write(found, length, "BIOES"), "O"]
    assert all(spans.may_follow(a, b) for a, b in pairwise(tags))


def test_every_illegal_transition_is_refused():
    """A transition is legal if and only if it occurs in some sentence of spans, written as BIOES."""
    kinds = ("A", "B")
    tags = spans.bioes_tags(kinds)
    seen = set()
    for cut in product(("A", "B", "O"), (1, 2, 4), ("A", "B", "O"), (1, 2, 4)):
        found, at = [], 0
        for kind, size in (cut[:2], cut[2:]):
            if kind != "O":
                found.append((kind, at, at + size - 1))
            at += size
        seen |= set(pairwise(["O", *spans.write(found, at, "BIOES"), "O"]))
    assert {(a, b) for a in tags for b in tags if spans.may_follow(a, b)} == seen


@pytest.mark.parametrize(
    ("sentences", "scheme", "violations"),
    [
        (["I-A O I-B I-B"], "IO", []),
        (["I-A B-A O I-B"], "IOB1", []),
        (["B-A I-A O B-B B-B"], "BIO", []),
        (["B-A I-A O", "I-B B-A"], "BIO", [(1, 0)]),
        (["B-A E-A S-B O"], "BIOES", []),
        (["B-A O S-B O"], "BIOES", [(0, 1)]),
        (["S-A B-A"], "BIOES", [(0, 1)]),
        (["B-A I-A O B-A", "O S-A", "B-B O"], "BIO", [(1, 1)]),
        (["NOUN VERB"], "plain", []),
        (["O O", "O"], "plain", []),
        (["B I O B"], "BIO", []),
        (["O B-A", "-LRB- NN"], "plain", []),
    ],
)
def test_schemes_are_recognised(sentences, scheme, violations):
    assert spans.scheme_of([sentence.split() for sentence in sentences]) == (scheme, violations)


def test_a_few_stray_tags_do_not_change_the_scheme():
    """As in the files of CoNLL-2003: IOB1, except for two tags."""
    rows = [["I-LOC", "O", "I-PER", "I-PER", "B-PER"]] * 50
    stray = [["O", "B-LOC", "O"], ["B-MISC", "I-MISC"]]
    assert spans.scheme_of([*rows, *stray]) == ("IOB1", [(50, 1), (51, 0)])


@given(st.lists(sentences(), min_size=1, max_size=5), st.sampled_from(("IOB1", "BIO", "BIOES")))
def test_the_scheme_that_was_written_has_no_violations(found, scheme):
    tags = [spans.write(sentence, length, scheme) for sentence, length in found]
    assert spans.scheme_of(tags)[1] == []

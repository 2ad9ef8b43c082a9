"""Role F1 on hand-made sentences whose counts are known, and its laws on random ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilmo.tasks.data.frames import Frame, detect_form, read_examples
from bilmo.tasks.roles.measure import arguments, by_argument

TRUE = """\
The      -      (A0*   *
news     -      *)     (A1*
he       -      *      *
brought  bring  (V*)   *)
,        -      *      *
they     -      *      (A0*)
said     say    *      (V*)
,        -      *      *
was      -      *      (C-A1*
bad      -      *      *)

Anna     -      (A0*)
who      -      (R-A0*)
took     take   (V*)
it       -      (A1*)
off      -      (C-V*)
"""
PREDICTED = """\
The      -      (A0*   *
news     -      *)     (A1*
he       -      *      *
brought  bring  (V*)   *)
,        -      *      *
they     -      *      (A1*)
said     say    *      (V*)
,        -      *      *
was      -      (AM*)  (C-A1*)
bad      -      *      *

Anna     -      (A0*)
who      -      (R-A0*)
took     take   (V*)
it       -      (A2*)
off      -      *
"""


def frames(tmp_path, text):
    (tmp_path / "a.conll").write_text(text, encoding="utf-8")
    return [example.frames for example in read_examples(detect_form(tmp_path / "a.conll"))]


def test_a_file_with_known_answers(tmp_path):
    """Six true arguments: A0 of `brought`, A1 (in two parts) and A0 of `said`, A0, R-A0 and A1 of `took`.

    Seven predicted ones, three of them correct: A0 of `brought`; A0 and R-A0 of `took`. The two A1 of `said` are
    wrong: C-A1 continues the A1 just before it. V and C-V do not count.
    """
    found = by_argument(frames(tmp_path, TRUE), frames(tmp_path, PREDICTED))
    details = dict(found.details)
    assert found.name == "role F1" and found.value == pytest.approx(2 * 3 / (6 + 7))
    assert [details["precision"], details["recall"]] == pytest.approx([3 / 7, 3 / 6])
    assert details["predicates with all roles correct"] == 0 and "F1 of the predicates" not in details
    rows = {row.label: (row.correct, row.predicted, row.true) for row in found.labels}
    assert rows == {"A0": (2, 2, 3), "A1": (0, 2, 2), "A2": (0, 1, 0), "AM": (0, 1, 0), "R-A0": (1, 1, 1)}


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("B-A1 O B-V B-C-A1 I-C-A1", [("A1", ((0, 0), (3, 4)))]),
        ("B-C-A1 O B-V O O", [("A1", ((0, 0),))]),
        ("B-A1 B-A1 B-V B-C-A1 O", [("A1", ((0, 0),)), ("A1", ((1, 1), (3, 3)))]),
        ("B-A1 B-C-A1 B-V B-C-A1 O", [("A1", ((0, 0), (1, 1), (3, 3)))]),
        ("B-R-A1 I-R-A1 B-V B-C-V O", [("R-A1", ((0, 1),))]),
        ("O O B-V I-V O", []),
        ("B-AM-TMP O B-V O B-C-AM-TMP", [("AM-TMP", ((0, 0), (4, 4)))]),
    ],
)
def test_continuations_belong_to_the_last_argument_of_their_role(tags, found):
    assert arguments(tags.split()) == found


def test_a_wrong_predicate_makes_its_arguments_wrong():
    true = [[Frame(1, ["B-A0", "B-V", "O"])]]
    predicted = [[Frame(1, ["B-A0", "B-V", "O"]), Frame(2, ["B-A0", "O", "B-V"])]]
    found = by_argument(true, predicted)
    assert [(row.correct, row.predicted, row.true) for row in found.labels] == [(1, 2, 1)]
    assert dict(found.details)["F1 of the predicates"] == pytest.approx(2 / 3)
    missed = by_argument(predicted, true)
    assert (missed.value, dict(missed.details)["predicates with all roles correct"]) == (found.value, 0.5)
    assert by_argument([[]], [[]]).value == 0


ROLES = ("A0", "A1", "C-A0", "C-A1", "R-A0", "V", "C-V")
TAGS = st.lists(st.sampled_from(["O", *(f"{p}-{r}" for r in ROLES for p in "BI")]), min_size=4, max_size=4)
SENTENCE = st.dictionaries(st.integers(0, 3), TAGS, max_size=3).map(
    lambda found: [Frame(index, tags) for index, tags in sorted(found.items())]
)


def counted(true, predicted):
    """The same counts in another way: parts of an argument are found from each continuation backwards."""
    triples = []
    for sentence in (true, predicted):
        found = set()
        for frame in sentence:
            marked = []  # (role, first, last, continues)
            for k, tag in enumerate(frame.tags):
                name = tag[2:]
                joined = tag[0] == "I" and marked and marked[-1][0] == name and marked[-1][2] == k - 1
                if joined:
                    marked[-1][2] = k
                elif tag != "O":
                    marked.append([name, k, k])
            groups = {}
            for at, (name, _, _) in enumerate(marked):
                plain = name.removeprefix("C-")
                before = [b for b in range(at) if marked[b][0] in (plain, f"C-{plain}")]
                groups[at] = groups[before[-1]] if name.startswith("C-") and before else at
            for at in set(groups.values()):
                plain = marked[at][0].removeprefix("C-")
                if plain != "V":
                    parts = tuple(tuple(marked[b][1:]) for b in groups if groups[b] == at)
                    found.add((frame.predicate, plain, parts))
        triples.append(found)
    return len(triples[0] & triples[1]), len(triples[1]), len(triples[0])


@given(SENTENCE, SENTENCE)
def test_counts_agree_with_another_way_to_count(true, predicted):
    found = by_argument([true], [predicted])
    sums = tuple(sum(getattr(row, name) for row in found.labels) for name in ("correct", "predicted", "true"))
    assert sums == counted(true, predicted)
    assert by_argument([true], [true]).value in (0, 1)

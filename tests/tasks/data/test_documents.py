"""Documents in every form: read, written, and refused with the line that is wrong."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilmo.errors import TextError
from bilmo.tasks.data import documents
from bilmo.tasks.data.documents import Document

from task_data import documents as stories


def read(path, form="auto"):
    return documents.read_examples(documents.detect_form(path, form, answers=True))


def write_conll(path, some, answers):
    lines = [
        line
        for number, (story, clusters) in enumerate(zip(some, answers, strict=True), start=1)
        for line in documents.conll(Document(story), clusters, number)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_conll_is_written_and_read_back(tmp_path):
    some, answers = stories(5)
    found, clusters = read(write_conll(tmp_path / "a.conll", some, answers))
    assert [document.sentences for document in found] == some
    assert clusters == answers
    assert found[2].name == "(document 3); part 000"
    lines = (tmp_path / "a.conll").read_text("utf-8").splitlines()
    assert lines[0] == "#begin document (document 1); part 000"
    assert lines[1].split("\t")[:4] == ["document_1", "0", "0", some[0][0][0]]


@st.composite
def nested(draw):
    """Spans that do not cross, in clusters."""
    spans = set()
    for _ in range(draw(st.integers(1, 12))):
        first = draw(st.integers(0, 9))
        last = draw(st.integers(first, 9))
        if all(b < first or last < a or (a <= first and last <= b) or (first <= a and b <= last) for a, b in spans):
            spans.add((first, last))
    clusters = {}
    for span in sorted(spans):
        clusters.setdefault(draw(st.integers(0, 3)), []).append(span)
    return documents.ordered(clusters.values())


@given(clusters=nested())
def test_nested_mentions_survive_conll(clusters, tmp_path_factory):
    story = [[f"w{k}" for k in range(6)], ["漢字", "é", "a|b", "(x)"]]
    path = write_conll(tmp_path_factory.mktemp("coref") / "a.conll", [story], [clusters])
    found, answers = read(path)
    assert found[0].sentences == story
    assert answers == [clusters]


def test_the_columns_of_other_writers(tmp_path):
    """Spaces between columns, more columns, an empty last column, names of clusters that are not numbers."""
    (tmp_path / "a.txt").write_text(
        "#begin document (x/y); part 001\n"
        "x/y 1 0 Anna NNP * - - - * (A)\n"
        "x/y 1 1 saw VBD * - - - * -\n"
        "x/y 1 2 her PRP * - - - * (b|(A)\n"
        "x/y 1 3 cat NN * - - - * b)\n"
        "\n"
        "x/y 1 0 It PRP * - - - * (b)\n"
        "#end document\n",
        encoding="utf-8",
    )
    found, answers = read(tmp_path / "a.txt", "conll")
    assert found == [Document([["Anna", "saw", "her", "cat"], ["It"]], "(x/y); part 001")]
    assert answers == [[[(0, 0), (2, 2)], [(2, 3), (4, 4)]]]
    (tmp_path / "b.conll").write_text(
        "#begin document (x); part 0\nx\t0\t0\tAnna\t_\t\nx\t0\t1\tsat\t_\t(0)\n\n#end document\n", encoding="utf-8"
    )
    assert read(tmp_path / "b.conll")[1] == [[[(1, 1)]]]


def test_json_lines(tmp_path):
    rows = [
        {"sentences": [["Anna", "sat"], ["She"]], "clusters": [[[2, 2], [0, 0]]], "name": "x"},
        {"sentences": [], "clusters": []},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n", encoding="utf-8")
    found, answers = read(tmp_path / "a.jsonl")
    assert [document.name for document in found] == ["x", ""]
    assert answers == [[[(0, 0), (2, 2)]], []]


CONLL = "#begin document (x); part 0\n{}\n#end document\n"
BAD = {
    "a bracket that is not closed": (
        "a.conll",
        CONLL.format("x 0 0 Anna - (1"),
        "line 2: the bracket of cluster 1 is never closed",
    ),
    "one that is not open": (
        "a.conll",
        CONLL.format("x 0 0 Anna - 1)"),
        "line 2: '1)' closes a mention of cluster 1 that is not open",
    ),
    "no brackets": ("a.conll", CONLL.format("x 0 0 Anna - 17"), "line 2: the last column is '17'"),
    "few columns": ("a.conll", CONLL.format("Anna 1"), "line 2: 2 columns; CoNLL-2012 has the token in column 4"),
    "no beginning": ("a.conll", "x 0 0 Anna - -\n", "line 1: comes before '#begin document'"),
    "no end": ("a.conll", "#begin document (x); part 0\nx 0 0 Anna - -\n", "line 1 has no line '#end document'"),
    "two beginnings": ("a.conll", "#begin document (x)\n#begin document (y)\n", "line 2: a document begins"),
    "two ends": ("a.conll", "#end document\n", "line 1: a document ends, but none has begun"),
    "nothing": ("a.conll", "\n", "contains no documents"),
    "plain text": ("a.txt", "Anna sat.\n", "is plain text, which has no clusters"),
    "no sentences": ("a.jsonl", '{"clusters": []}\n', 'line 1: needs "sentences"'),
    "no clusters": ("a.jsonl", '{"sentences": []}\n', 'line 1: has no "clusters"'),
    "clusters of another shape": (
        "a.jsonl",
        '{"sentences": [["a"]], "clusters": [[0, 0]]}\n',
        '"clusters" must be lists',
    ),
    "clusters that are no lists": (
        "a.jsonl",
        '{"sentences": [["a"]], "clusters": {"a": 1}}\n',
        '"clusters" must be lists',
    ),
    "outside": (
        "a.jsonl",
        '{"sentences": [["a"]], "clusters": [[[0, 1]]]}\n',
        "[0, 1] is not in the document, which has 1 tokens",
    ),
    "backwards": ("a.jsonl", '{"sentences": [["a", "b"]], "clusters": [[[1, 0]]]}\n', "[1, 0] is not in the document"),
    "in two clusters": (
        "a.jsonl",
        '{"sentences": [["a"]], "clusters": [[[0, 0]], [[0, 0]]]}\n',
        "[0, 0] is in two clusters",
    ),
    "not JSON": ("a.jsonl", "{\n", "line 1: is not JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_file_is_refused_and_its_line_named(tmp_path, name):
    file, text, says = BAD[name]
    (tmp_path / file).write_text(text, encoding="utf-8")
    with pytest.raises(TextError) as error:
        read(tmp_path / file)
    assert says in str(error.value)
    assert str(tmp_path / file) in str(error.value)


def test_marked_text():
    document = Document([["Anna", "saw", "her", "cat"], [], ["It", "sat"]])
    clusters = [[(0, 0), (2, 2)], [(2, 3), (4, 4)]]
    assert list(documents.marked(document, clusters)) == ["[Anna]1 saw [[her]1 cat]2", "", "[It]2 sat"]

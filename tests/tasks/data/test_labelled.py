"""Every form of labelled texts gives the same examples; errors name the number of the line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilmo.errors import TextError
from bilmo.tasks.data import labelled as texts
from bilmo.tasks.data.labelled import Labelled
from bilmo.text.files import STDIN

EXAMPLES = [Labelled("The cat, sat", "pos"), Labelled('a "naïve" 漢字 🙂', "neg"), Labelled("", "pos")]


def read(path, form="auto"):
    return texts.read_examples(texts.detect_form(path, form))


def as_csv(text):
    return '"' + text.replace('"', '""') + '"'


def asked(path, form="auto", learned="", labels=("pos", "neg")):
    """The texts to classify, for a task trained on these labels."""
    return list(texts.read_texts(texts.detect_input_form(path, form, labels.__contains__, learned)))


WRITTEN = {
    "header.tsv": "Label\tid\tText\n" + "".join(f"{e.label}\t7\t{e.text}\n" for e in EXAMPLES),
    "a.tsv": "".join(f"{e.label}\t{e.text}\n" for e in EXAMPLES),
    "tabs.txt": "\ufeff" + "\r\n".join(f"{e.label}\t{e.text}" for e in EXAMPLES),
    "spaces.txt": "\n\n".join(f"{e.label} {e.text}" for e in EXAMPLES),
    "no-header.csv": "".join(f"{e.label},{as_csv(e.text)}\n" for e in EXAMPLES),
    "header.csv": "id,text,label\n" + "".join(f"7,{as_csv(e.text)},{e.label}\n" for e in EXAMPLES),
    "a.jsonl": "".join(json.dumps({"label": e.label, "text": e.text, "more": 1}) + "\n" for e in EXAMPLES),
    "unnamed": "".join(json.dumps({"label": e.label, "text": e.text}) + "\n" for e in EXAMPLES),
}


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("pack", [None, gzip, lzma], ids=["plain", "gz", "xz"])
def test_the_same_examples_in_every_form(tmp_path, name, pack):
    path = tmp_path / name
    data = WRITTEN[name].encode()
    path = path if pack is None else path.with_name(name + {"gzip": ".gz", "lzma": ".xz"}[pack.__name__])
    path.write_bytes(data if pack is None else pack.compress(data))
    assert read(path) == EXAMPLES
    assert asked(path, learned=texts.detect_form(path).form) == [e.text for e in EXAMPLES]


def test_one_folder_per_class(tmp_path):
    for label, name, text in (("neg", "1.txt", "bad\nvery bad"), ("pos", "1.txt", "good"), ("pos", "2.txt", "")):
        (tmp_path / label).mkdir(exist_ok=True)
        (tmp_path / label / name).write_text(text, encoding="utf-8")
    assert read(tmp_path) == [Labelled("bad\nvery bad", "neg"), Labelled("good", "pos"), Labelled("", "pos")]


def test_tokens_and_numbers_in_jsonl(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"tokens": ["a", "b c"], "label": 3}\n', encoding="utf-8")
    assert read(path) == [Labelled(["a", "b c"], "3")]


def test_texts_alone(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one two\n\nthree\n", encoding="utf-8")
    assert asked(path) == ["one two", "", "three"]
    for name, text in (("a.csv", 'id,text\n1,"one, two"\n'), ("b.csv", '"one, two"\n'), ("a.tsv", "text\none, two\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert asked(tmp_path / name) == ["one, two"]
    (tmp_path / "b.tsv").write_text("one, two\nthree\tfour\n", encoding="utf-8")
    assert asked(tmp_path / "b.tsv") == ["one, two", "three\tfour"]


def test_labelled_texts_are_recognised_by_trained_labels(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("pos\tgood\nneg\tbad\nnew\tunknown\n", encoding="utf-8")
    assert asked(path) == ["good", "bad", "unknown"]
    assert asked(path, labels=("x", "y")) == ["pos\tgood", "neg\tbad", "new\tunknown"]
    assert asked(path, "tab", labels=("x", "y")) == ["good", "bad", "unknown"]
    path.write_text("pos good\n\nneg bad\n", encoding="utf-8")
    assert asked(path, learned="space") == ["good", "bad"]
    assert asked(path, learned="tab") == ["pos good", "", "neg bad"]
    (tmp_path / "a.csv").write_text("well, good\n", encoding="utf-8")
    with pytest.raises(TextError, match="does not contain the trained labels"):
        asked(tmp_path / "a.csv")
    assert asked(tmp_path / "a.csv", "csv") == [" good"]


def test_a_pipe_is_read_from_its_first_line_and_may_be_empty(monkeypatch):
    for piped, found in (("pos\tgood\nneg\tbad\n", ["good", "bad"]), ("", []), ('{"text": "x"}\n', ["x"])):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped.encode())))
        assert asked(STDIN) == found
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"pos\tgood\nneg\tbad\n")))
    assert read(STDIN) == [Labelled("good", "pos"), Labelled("bad", "neg")]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "pos\tgood\nneg bad\n", "line 2: has no tab"),
        ("a.tsv", "pos\tgood\n\n\tbad\n", "line 3: starts with a tab"),
        ("a.txt", "pos good\n bad\n", "line 2: starts with a space"),
        ("a.csv", "pos,good\nneg,bad,very\n", "line 2: 3 columns (neg, bad, very) instead of 2"),
        ("a.csv", "id,mood,review\n1,pos,good\n", "line 1: 3 columns (id, mood, review) instead of 2"),
        ("a.csv", "id,text\n1,good\n", "its columns are id, text; it needs `label` and `text`"),
        ("a.csv", "label,review\npos,good\n", "its columns are label, review; it needs `label` and `text`"),
        ("a.tsv", "text\tmood\ngood\tpos\n", "its columns are text, mood; it needs `label` and `text`"),
        ("a.tsv", "label\tid\ttext\npos\t1\n", "line 2: 2 columns; the first row names 3"),
        ("a.csv", "mood,review\n" + "pos,good\nneg,bad\n" * 15, "(mood, review) looks like column names"),
        ("a.tsv", "mood\treview\n" + "pos\tgood\nneg\tbad\n" * 15, "(mood, review) looks like column names"),
        ("a.csv", "".join(f"text {k},pos\n" for k in range(50)), "50 different labels for 50 examples"),
        ("a.jsonl", '{"label": "a", "text": "b"}\n{"text": "b"}\n', 'line 2: has no "label"'),
        ("a.csv", 'label,text\npos,"a\nb"\n,bad\n', "line 4: the label is empty"),
        ("a.csv", "label,text\n" + "pos,good\n" * 40 + 'neg,"bad\n' + "pos,good\n" * 959, "line 42: is not CSV"),
        ("a.csv", 'pos,"a\nb"\nneg,"bad\npos,good\nneg,"bad, so bad"\n', "line 3: is not CSV"),
        ("a.csv", 'pos,"good" film\n', "line 1: is not CSV"),
        ("a.csv", 'pos,good\nneg,"bad\npos,", good"\n', "line 2: 3 columns"),
        ("a.jsonl", '{"label": "a", "text": "b"}\n{"label": "a"\n', "line 2: is not JSON"),
        ("a.jsonl", "[1]\n", "line 1: is '[1]'; each line must be a JSON object"),
        ("a.jsonl", '{"label": "a"}\n', 'line 1: needs "text"'),
        ("a.jsonl", '{"label": [1], "text": "b"}\n', 'line 1: "label" is [1]'),
        ("a.txt", "\n \n", "contains no examples"),
        ("a.txt", "".join(f"word{k} and more\n" for k in range(50)), "50 different labels for 50 examples"),
        ("a.txt", b"pos good\nneg \xff\n", "line 2: byte 5"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(TextError) as error:
        read(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_other_mistakes_have_clear_errors(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(TextError, match="contains no folders"):
        read(tmp_path / "empty")
    with pytest.raises(TextError, match="no such file"):
        read(tmp_path / "nowhere.txt")
    (tmp_path / "a.txt").write_text("a b\n", encoding="utf-8")
    with pytest.raises(TextError, match="accepted: auto, tab"):
        read(tmp_path / "a.txt", "xml")
    with pytest.raises(TextError, match="no labels"):
        read(tmp_path / "a.txt", "lines")
    with pytest.raises(TextError, match="is not a folder"):
        read(tmp_path / "a.txt", "folder")


def test_long_texts_are_read_and_the_limit_of_the_process_stays(tmp_path):
    long = "good " * 50_000
    (tmp_path / "a.csv").write_text(f"label,text\npos,{long}\nneg,bad\n", encoding="utf-8")
    before = csv.field_size_limit()
    rows = texts.read_texts(texts.detect_form(tmp_path / "a.csv"))
    assert next(rows) == long and csv.field_size_limit() == before
    assert list(rows) == ["bad"] and csv.field_size_limit() == before


@given(st.lists(st.sampled_from(["good", "so, so", 'the "best"', "two\nlines", ""]), min_size=2, max_size=9), st.data())
def test_a_quote_that_is_not_closed_never_joins_rows(tmp_path_factory, texts_of_rows, data):
    path = tmp_path_factory.getbasetemp() / "quotes.csv"
    rows = [f"{'pos' if k % 2 else 'neg'},{as_csv(text)}" for k, text in enumerate(texts_of_rows)]
    place = data.draw(st.integers(0, len(rows) - 1))
    rows[place] = 'pos,"not closed'
    path.write_text("label,text\n" + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    line = 2 + sum(row.count("\n") + 1 for row in rows[:place])
    for read_all in (read, asked):
        with pytest.raises(TextError, match=rf"quotes\.csv, line {line}: is not CSV .* it must be closed"):
            read_all(path)


def test_a_first_row_longer_than_the_lines_that_are_read_to_detect_the_form(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('pos,"' + "a line\n" * 300 + '"\nneg,bad\n', encoding="utf-8")
    assert [example.label for example in read(path)] == ["pos", "neg"]
    assert asked(path) == ["a line\n" * 300, "bad"]

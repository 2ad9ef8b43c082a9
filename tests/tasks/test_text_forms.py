"""Every form of labelled texts is read to the same examples; a wrong line is named by its number."""

from __future__ import annotations

import gzip
import json
import lzma

import pytest

from bilmo.errors import TextError
from bilmo.tasks import texts
from bilmo.tasks.texts import Labelled

EXAMPLES = [Labelled("The cat, sat", "pos"), Labelled('a "naïve" 漢字 🙂', "neg"), Labelled("", "pos")]


def as_csv(text):
    return '"' + text.replace('"', '""') + '"'


WRITTEN = {
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
    assert texts.read(path) == EXAMPLES
    assert list(
        texts.read_texts(path, "auto" if name.endswith((".tsv", ".csv", ".jsonl")) else texts.form_of(path))
    ) == [e.text for e in EXAMPLES]


def test_a_folder_a_class(tmp_path):
    for label, name, text in (("neg", "1.txt", "bad\nvery bad"), ("pos", "1.txt", "good"), ("pos", "2.txt", "")):
        (tmp_path / label).mkdir(exist_ok=True)
        (tmp_path / label / name).write_text(text, encoding="utf-8")
    assert texts.read(tmp_path) == [Labelled("bad\nvery bad", "neg"), Labelled("good", "pos"), Labelled("", "pos")]


def test_tokens_and_numbers_in_jsonl(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"tokens": ["a", "b c"], "label": 3}\n', encoding="utf-8")
    assert texts.read(path) == [Labelled(["a", "b c"], "3")]


def test_texts_alone(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one two\n\nthree\n", encoding="utf-8")
    assert list(texts.read_texts(path)) == ["one two", "", "three"]
    (tmp_path / "a.csv").write_text("text\none\n", encoding="utf-8")
    assert list(texts.read_texts(tmp_path / "a.csv")) == ["one"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "pos\tgood\nneg bad\n", "line 2: has no tab"),
        ("a.tsv", "pos\tgood\n\n\tbad\n", "line 3: begins with a tab"),
        ("a.txt", "pos good\n bad\n", "line 2: begins with a space"),
        ("a.csv", "pos,good\nneg,bad,very\n", "line 2: 3 columns; 2 are needed"),
        ("a.csv", 'label,text\npos,"a\nb"\n,bad\n', "line 4: the label is empty"),
        ("a.jsonl", '{"label": "a", "text": "b"}\n{"label": "a"\n', "line 2: is not JSON"),
        ("a.jsonl", "[1]\n", "line 1: is '[1]'; each line must be a JSON object"),
        ("a.jsonl", '{"label": "a"}\n', 'line 1: needed is "text"'),
        ("a.jsonl", '{"label": [1], "text": "b"}\n', 'line 1: "label" is [1]'),
        ("a.txt", "\n \n", "holds no examples"),
        ("a.txt", "".join(f"word{k} and more\n" for k in range(50)), "50 different labels for 50 examples"),
        ("a.txt", b"pos good\nneg \xff\n", "line 2: byte 5"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(TextError) as told:
        texts.read(path)
    assert message in str(told.value)
    assert str(path) in str(told.value)


def test_other_mistakes_are_told(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(TextError, match="holds no folders"):
        texts.read(tmp_path / "empty")
    with pytest.raises(TextError, match="no such file"):
        texts.read(tmp_path / "nowhere.txt")
    (tmp_path / "a.txt").write_text("a b\n", encoding="utf-8")
    with pytest.raises(TextError, match="known are auto, tab"):
        texts.read(tmp_path / "a.txt", "xml")
    with pytest.raises(TextError, match="no labels"):
        texts.read(tmp_path / "a.txt", "lines")

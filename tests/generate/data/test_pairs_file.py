"""Files of pairs: every form, compressed or not, and every mistake."""

from __future__ import annotations

import gzip
import json
import lzma

import pytest

from bilmo.errors import TextError
from bilmo.generate.data.pairs_file import Fields, read_pairs, read_sources

FIELDS = Fields("source", "target", lists_are_paragraphs=False)
NEWS = Fields("paras", "title", lists_are_paragraphs=True)


def write(path, text):
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opened(path, "wt", encoding="utf-8") as file:
        file.write(text)
    return path


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
@pytest.mark.parametrize(
    ("names", "texts"),
    [
        (["a.en", "a.de"], ['a cat\na "dog"\n', "Katze\nHund\n"]),
        (["a.tsv"], ['a cat\tKatze\n\na "dog"\tHund\n']),
        (["named.tsv"], ['id\tTarget\tsource\n1\tKatze\ta cat\n2\tHund\ta "dog"\n']),
        (["a.csv"], ['source,target\na cat,Katze\n"a ""dog""",Hund\n']),
        (["a.jsonl"], ['{"source": "a cat", "target": "Katze"}\n{"source": "a \\"dog\\"", "target": "Hund"}\n']),
    ],
)
def test_every_form(tmp_path, names, texts, ending):
    paths = [write(tmp_path / (name + ending), text) for name, text in zip(names, texts, strict=True)]
    pairs = read_pairs(paths, "auto", FIELDS)
    assert (pairs.sources, pairs.targets, pairs.notes) == (["a cat", 'a "dog"'], ["Katze", "Hund"], [])
    if len(paths) == 1:
        assert list(read_sources(paths[0], "auto", FIELDS)[1]) == ["a cat", 'a "dog"']


def test_lists_are_paragraphs_or_tokens(tmp_path):
    path = write(tmp_path / "a.jsonl", json.dumps({"paras": ["One.", "Two."], "title": "T"}) + "\n")
    assert read_pairs([path], "auto", NEWS).sources == ["One.\nTwo."]
    tokens = Fields("paras", "title", lists_are_paragraphs=False)
    assert read_pairs([path], "auto", tokens).sources == [["One.", "Two."]]


def test_empty_sides_are_left_out_and_named(tmp_path):
    a = write(tmp_path / "a", "x\n\ny\n\n" + "z\n" * 8)
    b = write(tmp_path / "b", "x\n\n\nu\n" + "\n" * 7 + "z\n")
    pairs = read_pairs([a, b], "auto", FIELDS)
    assert pairs.sources == ["x", "z"]
    assert pairs.notes == ["lines 3, 4, 5, 6, 7 and 4 more: one side is empty; left out"]


def test_sources_alone(tmp_path):
    path = write(tmp_path / "a.txt", "one\ttwo\n\nthree\n")
    shown, found = read_sources(path, "auto", FIELDS)
    assert shown == "sources alone, one per line" and list(found) == ["one\ttwo", "", "three"]


@pytest.mark.parametrize(
    ("texts", "form", "message"),
    [
        (["a\nb\n", "a\n"], "auto", "f0 has 2 lines, {}f1 has 1; line n of one must belong"),
        (["a\n", "a\nb\nc\n"], "auto", "f0 has 1 lines, {}f1 has 3"),
        (["a\n", "b\n", "c\n"], "auto", "3 files; give one file of pairs, or two"),
        (["a\n", "b\n"], "tsv", "form is 'tsv', but there are two files"),
        (["a\tb\n"], "parallel", "is one file; the form parallel needs two"),
        (["a\tb\nc\n"], "auto", "line 2: has no tab; expected a source, a tab and a target"),
        (["a\tb\tc\n"], "auto", "line 1: has 3 columns"),
        (["a\tb\n"], "nothing", "form is 'nothing'; accepted: auto, parallel, tab"),
        (["\n\n"], "auto", "contains no pairs"),
        (['{"source": "a"}\n'], "auto", "line 1: has no `target`; it has source"),
        (['{"source": 3, "target": "b"}\n'], "auto", "`source` is 3. It must be a text"),
        (["source,other\na,b\n"], "csv", "there is no column `target`"),
    ],
)
def test_mistakes(tmp_path, texts, form, message):
    paths = [write(tmp_path / f"f{k}", text) for k, text in enumerate(texts)]
    with pytest.raises(TextError) as error:
        read_pairs(paths, form, FIELDS)
    assert message.replace("{}", f"{tmp_path}/") in str(error.value)

"""Every form of tagged sentences gives the same examples; errors name the number of the line."""

from __future__ import annotations

import io
import json
import lzma
import sys

import pytest

from bilmo.errors import TextError
from bilmo.tasks.data import columns
from bilmo.tasks.data.columns import Tagged
from bilmo.text.files import STDIN

EXAMPLES = [Tagged(["The", "naïve", "cat"], ["O", "B-A", "I-A"]), Tagged(["漢字"], ["O"])]
WRITTEN = {
    "a.conll": "\n".join("".join(f"{w}\t{t}\n" for w, t in zip(e.tokens, e.tags, strict=True)) for e in EXAMPLES),
    "spaces.txt": "-DOCSTART- -X- O\n\n"
    + "\n".join("".join(f"{w} NN {t}\n" for w, t in zip(e.tokens, e.tags, strict=True)) for e in EXAMPLES),
    "a.jsonl": "".join(json.dumps({"tokens": e.tokens, "tags": e.tags}) + "\n" for e in EXAMPLES),
    "lines-end.txt": "\r\n".join(
        "".join(f"{w}\t{t}\r\n" for w, t in zip(e.tokens, e.tags, strict=True)) for e in EXAMPLES
    ),
}


def read(path, form="auto", column=""):
    return columns.read_examples(columns.detect_form(path, form), column)


def asked(path, form="auto", column=""):
    """The sentences to tag, for a task trained on these tags; None where they are lines of text."""
    source = columns.detect_input_form(path, form, ("O", "B-A", "I-A").__contains__, column)
    return None if source.form == "lines" else list(columns.read_sentences(source))


UD = """# sent_id = 1
1\tDo\tdo\tAUX\tVBP\t_\t2\taux\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVB\t_\t0\troot\t_\t_
2.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_

# sent_id = 2
1\tNew York\tNew York\tPROPN\tNNP\t_\t0\troot\t_\t_
"""


@pytest.mark.parametrize("name", WRITTEN)
def test_the_same_examples_in_every_form(tmp_path, name):
    (tmp_path / name).write_text(WRITTEN[name], encoding="utf-8", newline="")
    assert read(tmp_path / name) == EXAMPLES
    assert asked(tmp_path / name) == [e.tokens for e in EXAMPLES]


@pytest.mark.parametrize("name", ["a.conllu", "unnamed"])
def test_conllu_without_multiword_tokens_and_empty_nodes(tmp_path, name):
    (tmp_path / name).write_text(UD, encoding="utf-8")
    assert read(tmp_path / name) == [Tagged(["Do", "do"], ["AUX", "AUX"]), Tagged(["New York"], ["PROPN"])]
    assert read(tmp_path / name, column="xpos")[0].tags == ["VBP", "VB"]
    assert asked(tmp_path / name) == [["Do", "do"], ["New York"]]


def test_compressed_files_and_columns_by_number(tmp_path):
    path = tmp_path / "a.txt.xz"
    path.write_bytes(lzma.compress(b"a X 1\nb Y 2\n"))
    assert read(path) == [Tagged(["a", "b"], ["1", "2"])]
    assert read(path, column="2") == [Tagged(["a", "b"], ["X", "Y"])]


def test_sentences_alone(tmp_path):
    path = tmp_path / "a.txt"
    for text in ("one two\n\nthree\n", "one\n", "one two\nthree four\n", "O\n"):
        path.write_text(text, encoding="utf-8")
        assert asked(path) is None
    path.with_suffix(".conll").write_text("one\ntwo\n\nthree\n", encoding="utf-8")
    assert asked(path.with_suffix(".conll")) == [["one", "two"], ["three"]]
    path.write_text("one I-A 1\ntwo O 2\n", encoding="utf-8")
    assert asked(path) is None and asked(path, column="2") == asked(path, "conll") == [["one", "two"]]


@pytest.mark.parametrize("name", [*WRITTEN, "a.conllu"])
def test_a_pipe_is_read_from_its_first_line(monkeypatch, name):
    text = UD if name == "a.conllu" else WRITTEN[name]
    found = [["Do", "do"], ["New York"]] if name == "a.conllu" else [e.tokens for e in EXAMPLES]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert asked(STDIN) == found
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert [e.tokens for e in read(STDIN)] == found


@pytest.mark.parametrize(
    ("name", "text", "column", "message"),
    [
        ("a.conll", "a\tO\nb\n", "", "line 2: 1 columns, but the lines before have 2"),
        ("a.conll", "a\n", "", "line 1: 1 columns; expected a token and a tag"),
        ("a.conll", "a\tO\n", "4", "line 1: 2 columns; expected column 4"),
        ("a.conll", "a\t\n", "", "line 1: the tag is empty"),
        ("a.conll", "a\tO\n", "upos", "column is 'upos'"),
        ("a.conllu", UD, "deprel", "column is 'deprel'"),
        ("a.conllu", "1\tDo\n", "", "line 1: 2 columns; CoNLL-U has 10"),
        ("a.jsonl", '{"tokens": ["a"], "tags": []}\n', "", 'line 1: needs "tags", one string for each of 1'),
        ("a.jsonl", '{"tokens": ["a"], "tags": ["O"]}\n{"tokens": ["a"]}\n', "", 'line 2: has no "tags"'),
        ("a.jsonl", '{"tokens": "a"}\n', "", 'line 1: needs "tokens"'),
        ("a.conll", "\n\n", "", "contains no tagged sentences"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, name, text, column, message):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(TextError) as error:
        read(tmp_path / name, column=column)
    assert message in str(error.value)

"""What can be embedded: files, folders, pipes, JSON lines and text on the command line."""

from __future__ import annotations

import gzip
import io
import json
import sys
import zipfile
from pathlib import Path

import pytest

from bilmo.embed.inputs import Inputs, is_text
from bilmo.errors import TextError


@pytest.fixture
def here(tmp_path: Path, monkeypatch) -> Path:
    (tmp_path / "two words.").write_text("from a file\n")
    (tmp_path / "a.txt").write_text("a1\n\n a2 \n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.gz").write_bytes(gzip.compress(b"b1\nb2"))
    with zipfile.ZipFile(tmp_path / "deep" / "c.zip", "w") as archive:
        archive.writestr("c", "c1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def items(*arguments: str, **more) -> list:
    return list(Inputs(arguments, **more).items())


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ("He sat on the bank.", True),
        ("He sat", True),
        ("Stop!", True),
        ("他坐在河边", True),
        ("银行。", True),
        ("bank ", True),
        ("", True),
        (" ", True),
        ("word " * 1000, True),
        ("x" * 5000, True),
        ("bank", False),
        ("-", False),
        ("nowhere.txt", False),
        ("my file.txt", False),
        ("数据.txt", False),
        ("数据/文件", False),
        ("My Text.JSONL.GZ", False),
        ("two words.", False),
        ("deep", False),
    ],
)
def test_text_is_distinguished_from_file_names(here, argument, text):
    assert is_text(argument) is text


def test_inputs_come_in_their_order_and_blank_lines_count(here):
    assert items("deep", "typed text", "a.txt", "two words.") == [
        "b1",
        "b2",
        "c1",
        "typed text",
        "a1",
        "",
        " a2 ",
        "from a file",
    ]
    assert items("one line\nand another\n") == ["one line", "and another"]


def test_a_missing_file_is_named_with_the_cure(here):
    for name in ("bank", "nowhere.txt"):
        with pytest.raises(TextError, match=f"{name}: there is no such file. To embed the word itself, put a space"):
            items(name)


def test_a_pipe_is_read_once_and_completely_after_its_first_lines_were_sampled(here, monkeypatch):
    monkeypatch.setattr("bilmo.embed.inputs.SAMPLE", 2)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"p1\np2\np3\n")))
    given = Inputs(("a.txt", "-"))
    assert given.piped
    assert given.sample == ["a1", ""]
    assert list(given.items()) == ["a1", "", " a2 ", "p1", "p2", "p3"]
    files = Inputs(("a.txt",))
    assert not files.piped
    assert files.sample == ["a1", ""]
    assert list(files.items()) == list(files.items()) == ["a1", "", " a2 "]


def test_a_survey_counts_and_distinguishes_texts(here):
    first = Inputs(("a.txt", "deep")).survey()
    assert (first.lines, first.characters) == (6, 2 + 0 + 4 + 6)
    assert Inputs(("a.txt", "deep")).survey() == first
    (here / "a.txt").write_text("a1\n \na2 \n")
    assert Inputs(("a.txt", "deep")).survey().digest != first.digest


# JSON lines


def jsonl(path: Path, *records: object) -> str:
    path.write_text("".join(record if isinstance(record, str) else json.dumps(record) + "\n" for record in records))
    return str(path)


def test_a_field_of_json_lines_is_a_text_or_its_tokens(here):
    path = jsonl(
        here / "x.jsonl", {"t": "He sat.", "n": 1}, {"t": ["He", "sat", "."]}, "\n", {"t": "\ud800\0"}, {"t": []}
    )
    assert items(path, "typed text", field="t") == ["He sat.", ["He", "sat", "."], "", "\ud800\0", [], "typed text"]


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ("{\n", r"x, line 2: is not JSON"),
        ({"u": 1, "v": 2}, r"x, line 2: has no field 't'; its fields are u, v"),
        ([1], r"x, line 2: has no field 't'; it is not an object"),
        ({"t": 5}, r"x, line 2: the field 't' is neither a text nor a list of tokens: 5"),
        ({"t": ["a", 5]}, r"neither a text nor a list of tokens"),
        ({"t": None}, r"neither a text nor a list of tokens: None"),
        ("[" * 100_000 + "\n", r"x, line 2: is not JSON"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_wrong_in_json_lines_is_named_with_its_line(here, record, says):
    with pytest.raises(TextError, match=says):
        items(jsonl(here / "x", {"t": ""}, record), field="t")


@pytest.mark.parametrize("name", ["x.jsonl", "x.ndjson", "x.jsonl.gz"])
def test_json_lines_without_a_field_are_not_read_as_text(here, name):
    (here / name).write_bytes(gzip.compress(b"{}\n"))
    with pytest.raises(TextError, match="this file contains JSON lines; name the field to embed with --field NAME"):
        items(name)

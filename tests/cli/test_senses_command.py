"""`bilmo senses`, as it is typed."""

import json
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, model):
    monkeypatch.chdir(tmp_path)
    lines = [f"He sat on the bank of river {k}.\nThe bank lent {k} dollars <b>!" for k in range(6)]
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "河.txt").write_text("他坐在银行。\n银行在河边。\n", encoding="utf-8")
    return tmp_path


def test_groups_are_shown_and_drawn(run):
    found = run("senses", "model", "bank", "--in", "text.txt", "-n", 1, "-o", "senses.html")
    assert found.code == 0 and found.out.startswith("bank: 12 uses, ") and "near: " in found.out, found
    page = Path("senses.html").read_text(encoding="utf-8")
    assert page.count("<circle") >= 12 and "&lt;b&gt;" in page and "<b>" not in page and "<script" not in page
    value = json.loads(run("senses", "model", "bank", "--in", "text.txt", "--json").out)
    assert value["uses"] == 12 == sum(sense["number_of_uses"] for sense in value["senses"])
    chinese = run("senses", "model", "银行", "--in", "河.txt", "--lang", "zh", "-o", "银行.svg")
    assert chinese.code == 0 and "[银行]" in chinese.out
    assert "银行" in Path("银行.svg").read_text(encoding="utf-8")


def test_an_index_is_grouped_as_its_text(run, another):
    assert run("index", "model", "text.txt", "-o", "uses").code == 0
    text = run("senses", "model", "bank", "--in", "text.txt", "--mix", "mean")
    index = run("senses", "model", "bank", "--in", "uses", "-o", "senses.svg")
    assert index.code == 0 and index.out == f"{text.out}\nsenses.svg\n", index
    refused = run("senses", another, "bank", "--in", "uses")
    assert refused.code == 1 and "uses: was made with another model (model)" in refused.err, refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cat", "--in", "text.txt"), "does not occur"),
        (("a b", "--in", "text.txt"), "give one word"),
        (("", "--in", "text.txt"), "give one word"),
        (("bank", "--in", "none.txt"), "no such file"),
        (("cat", "--in", "uses"), "'cat' is not used in uses"),
        (("bank", "--in", "uses", "--mix", "top"), "leave out --mix"),
        (("bank", "--in", "uses", "--in", "text.txt"), "an index cannot be combined"),
        (("bank", "--in", "-"), "read twice"),
        (("bank", "--in", "text.txt", "--mix", "all"), "one vector each"),
        (("bank", "--in", "text.txt", "-o", "x.pdf"), ".html, .svg, .png"),
        (("bank", "--in", "text.txt", "-o", "none/x.svg"), "does not exist"),
    ],
)
def test_a_mistake_is_one_line(run, arguments, message):
    assert "uses" not in arguments or run("index", "model", "text.txt", "-o", "uses").code == 0
    found = run("senses", "model", *arguments)
    assert found.code == 1 and message in found.err and found.err.count("\n") == 1, found

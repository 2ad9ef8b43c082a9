"""`bilmo draw`, as it is typed."""

from pathlib import Path

import pytest

from bilmo.errors import need


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, model):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_sentence_and_two_are_drawn_in_each_form(run, folder):
    (folder / "text.txt").write_text("He sat on the bank.\nThe bank was closed.\n")
    assert run("draw", "model", "他坐在河边。", "He sat.", "--lang", "zh", "-o", "a.html").out == "a.html\n"
    page = Path("a.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1 and "他坐在河边。" in page and "Cosines of contextual vectors (mean)." in page
    assert run("draw", "model", "He sat.", "-o", "b.svg").code == 0
    assert "layer 0: the words alone" in Path("b.svg").read_text(encoding="utf-8")
    given = ("He sat.", "The bank.", "--in", "text.txt", "--mix", "1,2", "-o", "c.svg")
    assert run("draw", "model", *given).code == 0
    assert "(layers 1,2, whitened)" in Path("c.svg").read_text(encoding="utf-8")


def test_png_needs_the_extra(run):
    pytest.importorskip("resvg_py")
    assert need("resvg_py", extra="draw", purpose="x")
    assert run("draw", "model", "He sat.", "-o", "a.png").code == 0
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a b", "c d", "e f", "-o", "x.svg"), "one sentence or two; found 3"),
        (("a b", "-o", "x.pdf"), ".html, .svg, .png"),
        (("", "-o", "x.svg"), "a sentence is empty"),
        (("a " * 99, "-o", "x.svg"), "99 tokens"),
        (("a b", "--in", "model", "-o", "x.svg"), "--in is for two sentences"),
        (("a b", "c d", "--mix", "all", "-o", "x.svg"), "one vector each"),
        (("a b", "c d", "--mix", "9", "-o", "x.svg"), "9"),
        (("a b", "c d", "--in", "none.txt", "-o", "x.svg"), "no such file"),
        (("a b", "c d", "--in", "uses", "-o", "x.svg"), "found an index"),
        (("a b", "-o", "none/x.svg"), "does not exist"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(run, arguments, message):
    Path("uses").mkdir()
    Path("uses/config.json").write_text('{"bilmo_index": 1}', encoding="utf-8")
    found = run("draw", "model", *arguments)
    assert found.code == 1 and message in found.err and found.err.count("\n") == 1, found
    assert not Path("x.svg").exists()

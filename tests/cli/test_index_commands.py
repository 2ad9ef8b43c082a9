"""`bilmo index`, and `bilmo similar` with a word in square brackets, as they are typed."""

import json

import pytest

import bilmo

TEXT = "He sat on the bank of the river.\n\nThe bank lends money. She sat by the river.\nA BANK!\n"
ASKED = "They walked along the [bank]."


@pytest.fixture
def folder(tmp_path, model, monkeypatch):
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "more.txt").write_text("Another bank closed.\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_index_is_built_extended_and_searched(run, folder):
    built = run("index", "model", "text.txt", "-o", "uses")
    assert (built.code, built.out) == (0, "uses: 19 uses in 4 sentences\n"), built
    added = run("index", "model", "more.txt", "-o", "uses", "--add")
    assert (added.code, added.out) == (0, "uses: 3 uses in 1 sentences; 22 uses in all\n"), added
    found = run("similar", "model", ASKED, "--in", "uses", "-n", 4, "--same-word")
    assert found.code == 0 and found.err == "", found
    names, *rows = [line.strip().split(maxsplit=2) for line in found.out.splitlines()]
    assert names == ["cosine", "place", "use"]
    assert {tuple(row[1:]) for row in rows} == {
        ("text.txt:1", "He sat on the [bank] of the river."),
        ("text.txt:3", "The [bank] lends money."),
        ("text.txt:4", "A [BANK]!"),
        ("more.txt:1", "Another [bank] closed."),
    }
    data = json.loads(run("similar", "model", ASKED, "--in", "uses", "-n", 4, "--same-word", "--json").out)
    wanted = bilmo.Index.open("uses").search(bilmo.load("model"), ASKED, 4, same_word=True)
    assert [row["text"] for row in data[0]["similar"]] == [use.text for use in wanted]
    assert [f"{row['cosine']:.3f}" for row in data[0]["similar"]] == [row[0] for row in rows]
    assert data[0]["text"] == ASKED and data[0]["similar"][0]["tokens"] == wanted[0].tokens


def test_a_text_is_searched_without_an_index(run, folder):
    found = run("similar", "model", ASKED, "A [river].", "--in", "text.txt", "--in", "more.txt", "-n", 3)
    assert found.code == 0, found
    lines = found.out.splitlines()
    assert lines[0] == ASKED and lines[6] == "A [river]." and len(lines) == 11
    assert run("similar", "model", "bank", "--in", "text.txt", "--min-count", 1).code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("A [bank].",), "name it with --in"),
        (("bank", "--in", "uses"), "is an index, in which a word in square brackets is searched"),
        (("bank", "--same-word", "--in", "text.txt"), "--same-word needs a word in square brackets"),
        (("A [bank].", "--in", "uses", "--in", "text.txt"), "an index cannot be combined"),
        (("[A] [bank].", "--in", "uses"), "2 opening and 2 closing square brackets"),
        (("A [bank", "--in", "uses"), "1 opening and 0 closing square brackets"),
        (("[A bank].", "--in", "text.txt"), "hold 2 tokens"),
        (("a [ ]", "--in", "text.txt"), "are empty"),
        (("a [zebra]", "--in", "text.txt", "--same-word"), "'zebra' is not used in the text"),
        (("a [zebra]", "--in", "uses", "--same-word"), "'zebra' is not used in uses"),
        (("a [bank]", "--in", "blank.txt"), "no word in the text"),
        (("a [bank]", "--in", "nothing"), "nothing: there is no such file"),
        (("a [bank]", "--in", "-"), "can be read only once"),
        (("", "--in", "uses"), "a word is empty"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_mistakes_in_a_search_are_explained_in_one_line(run, folder, arguments, says):
    (folder / "blank.txt").write_text("\n ...\n", encoding="utf-8")
    assert run("index", "model", "text.txt", "-o", "uses").code == 0
    found = run("similar", "model", *arguments)
    assert found.code == 1 and says in found.err and found.err.count("\n") == 1 and found.out == "", found


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("text.txt", "-o", "uses"), "already exists"),
        (("text.txt", "-o", "uses", "--add"), "already contains this text"),
        (("more.txt", "-o", "new", "--add"), "new: there is no such index"),
        (("more.txt", "-o", "model", "--add"), "is not an index"),
        (("more.txt", "-o", "uses", "--add", "--dtype", "int8"), "leave out --dtype"),
        (("blank.txt", "-o", "new"), "no word in the text"),
        (("blank.txt", "-o", "uses", "--add"), "no word in the text"),
        (("nothing.txt", "-o", "new"), "there is no such file"),
        (("-", "-o", "new"), "can be read only once"),
        (("text.txt", "-o", "text.txt"), "is the input"),
        (("text.txt", "more.txt", "-o", "uses", "--add", "--lang", "spaces"), "was built with lang 'auto'"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_mistakes_in_building_are_explained_in_one_line_and_nothing_is_left(run, folder, arguments, says):
    (folder / "blank.txt").write_text("\n ...\n", encoding="utf-8")
    assert run("index", "model", "text.txt", "-o", "uses").code == 0
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    found = run("index", "model", *arguments)
    assert found.code == 1 and says in found.err and found.err.count("\n") == 1 and found.out == "", found
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} == before


def test_another_model_is_refused(run, folder, another):
    assert run("index", "model", "text.txt", "-o", "uses").code == 0
    for command in (("similar", another, ASKED, "--in", "uses"), ("index", another, "more.txt", "-o", "uses", "--add")):
        found = run(*command)
        assert found.code == 1 and "uses: was made with another model (model)" in found.err, found

"""`bilmo fit senses`, and `bilmo predict` and `bilmo score` with what it saves, as they are typed."""

import json

import pytest

from sense_data import write_sense_files

FIT = ("fit", "senses", "model", "--train", "semcor.jsonl", "--inventory", "index.sense", "-o", "S")


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch, model):
    write_sense_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_senses_from_fit_to_score(run, files):
    done = run(*FIT)
    assert done.code == 0 and done.out == "S: 8 senses with 9 uses\n", done
    assert "already exists" in run(*FIT).err

    found = run("predict", "S", "He sat on the bank of boxes.")
    rows = [line.split("\t") for line in found.out.splitlines()]
    assert rows[0][:6] == ["text", "word", "lemma", "pos", "sense", "fallback"]
    assert [(row[1], row[2], row[5]) for row in rows[1:]] == [
        ("sat", "sit", ""),
        ("bank", "bank", ""),
        ("boxes", "box", "yes"),
    ]
    assert "1 of 3 words are not in the training text" in found.err

    (files / "text.txt").write_text("He sat.\n\nThe <bank> went & 河岸.\n", encoding="utf-8")
    assert run("predict", "S", "text.txt", "-o", "out.jsonl").code == 0
    lines = [json.loads(line) for line in (files / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [len(line["senses"]) for line in lines] == [1, 0, 2] and lines[2]["senses"][1]["sense"] == "go%2:38:00::"
    assert run("predict", "S", "text.txt", "-o", "out.html").code == 0
    page = (files / "out.html").read_text(encoding="utf-8")
    assert "&lt;" in page and "<bank>" not in page and "河岸" in page and "noun" not in page.split("</style>")[0]

    keys = run("predict", "S", "test.xml")
    assert [line.split()[0] for line in keys.out.splitlines()] == ["d0.t0", "d0.t1", "d0.t2"]
    scored = run("score", "S", "test.xml", "--gold", "test.key", "--json")
    assert scored.code == 0 and json.loads(scored.out)["value"] == pytest.approx(4 / 7)
    assert "got their first sense" in run("score", "S", "test.xml", "--gold", "test.key").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("score", "S", "test.xml"), "give the file of gold keys"),
        (("score", "S", "test.xml", "test.xml", "--gold", "test.key"), "found 2 files"),
        (("predict", "S", "a b", "--probabilities"), "which is not a probability"),
        (("predict", "S", "a b", "--beam", "3"), "only for tasks that write texts; this task is senses"),
        (("predict", "S"), "nothing to predict from"),
        (("predict", "S", "a b", "--to", "conll"), "can be written as table, csv, jsonl, html; found conll"),
        (("predict", "S", "test.xml", "--to", "html"), "can be written as keys; found html"),
        (("predict", "S", "a b", "--form", "column"), "accepted: auto, text, xml"),
        (("predict", "S", "none.txt"), "no such file"),
        (("predict", "S", "test.xml", "-o", "test.xml", "--to", "keys"), "is the input"),
        ((*FIT[:-1], "T", "--mix", "all"), "senses need one vector per word"),
        ((*FIT[:-1], "T", "--mix", "7"), "7"),
        ((*FIT[:-1], "index.sense"), "is the input"),
        (("fit", "senses", "model", "--train", "-", "--inventory", "index.sense", "-o", "T"), "read from files"),
        (("fit", "senses", "model", "--train", "index.sense", "--inventory", "index.sense", "-o", "T"), "is not JSON"),
        (("fit", "senses", "model", "--train", "semcor.jsonl", "--inventory", "test.key", "-o", "T"), "index.sense"),
    ],
)
def test_a_mistake_is_one_line(run, files, arguments, message):
    assert run(*FIT).code == 0
    found = run(*arguments)
    assert found.code == 1 and message in found.err, found
    errors = [line for line in found.err.splitlines() if not line.startswith("note:")]
    assert len(errors) == 1 and not (files / "T").exists()


def test_gold_keys_are_for_senses_only(run, files):
    (files / "C").mkdir()
    (files / "C" / "config.json").write_text('{"task": "classify"}')
    assert "--gold is for word senses" in run("score", "C", "x.tsv", "--gold", "test.key").err

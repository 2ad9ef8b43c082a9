"""Entailment on the command line: every form of data, every command, every mistake."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from task_data import pairs

QUICK = ("--hidden", 6, "--rate", 0.02, "--epochs", 2)


def ok(result):
    assert result.code == 0, result.err
    return result


def write(path, number=30, seed=0):
    """A file in the form that its name says."""
    rows = [(a, b, label) for (a, b), label in zip(*pairs(number, seed), strict=True)]
    if path.name == "sick.txt":
        head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
        text = head + "".join(f"{k}\t{a}\t{b}\t3.0\t{label.upper()}\n" for k, (a, b, label) in enumerate(rows))
    elif path.name == "snli.jsonl":
        found = [{"gold_label": label, "sentence1": a, "sentence2": b} for a, b, label in [*rows, ("a", "b", "-")]]
        text = "".join(json.dumps(row) + "\n" for row in found)
    elif path.name == "ocnli.json":
        cn = str.maketrans({"c": "猫", "d": "狗"})
        found = [{"sentence1": a.translate(cn), "sentence2": b, "label": label, "id": "1"} for a, b, label in rows]
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found)
    elif path.suffix == ".csv":
        text = "text1,text2,label\n" + "".join(f'"{a}","{b}",{label}\n' for a, b, label in rows)
    else:
        text = "premise\thypothesis\tlabel\n" + "".join(f"{a}\t{b}\t{label}\n" for a, b, label in rows)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["sick.txt", "snli.jsonl", "ocnli.json", "own.csv", "own.tsv"])
def test_fit_score_and_predict_in_every_form(run, model, tmp_path, name):
    train, out = write(tmp_path / name), tmp_path / "out"
    fitted = ok(run("fit", "entail", model, "--train", train, "--test", train, "-o", out, *QUICK))
    assert re.search(r"accuracy +[01]\.", fitted.out) and "true \\ predicted" in fitted.out
    assert ("1 pairs with the label - (annotators disagree) are left out" in fitted.err) == (name == "snli.jsonl")
    assert re.search(r"examples +27\b", fitted.out)
    scored = ok(run("score", out, train))
    assert scored.out.splitlines()[0] in fitted.out
    assert ("are left out" in scored.err) == (name == "snli.jsonl")
    answered = ok(run("predict", out, train))
    assert len(answered.out.splitlines()) == 31 + (name == "snli.jsonl")  # the names, and one line per pair


@pytest.fixture
def fitted(run, model, tmp_path):
    train = write(tmp_path / "a.tsv")
    ok(run("fit", "entail", model, "--train", train, "-o", tmp_path / "task", "--elmo-at", "both", *QUICK))
    return tmp_path / "task"


def test_predictions_in_every_form(run, fitted, tmp_path):
    raw = 'A cat saw.\tThe "cow", blue\n\n一只猫\t\n'
    answered = ok(run("predict", fitted, "-", stdin=raw))
    assert "read as `text1<TAB>text2`, one pair per line" in answered.err
    rows = [line.split("\t") for line in answered.out.splitlines()]
    assert rows[0] == ["label", "text1", "text2"]
    assert [row[1:] for row in rows[1:]] == [["A cat saw.", 'The "cow", blue'], ["一只猫", ""]]
    assert {row[0] for row in rows[1:]} <= {"entailment", "contradiction", "neutral"}
    table = list(
        csv.reader(io.StringIO(ok(run("predict", fitted, "-", "--to", "csv", "--probabilities", stdin=raw)).out))
    )
    assert table[0] == ["label", "contradiction", "entailment", "neutral", "text1", "text2"]
    assert all(sum(map(float, row[1:4])) == pytest.approx(1, abs=1e-3) for row in table[1:])
    asked = tmp_path / "asked.jsonl"
    asked.write_text('{"premise": "a cat", "hypothesis": ["the", "dog"]}\n', encoding="utf-8")
    (entry,) = map(json.loads, ok(run("predict", fitted, asked, "--to", "jsonl", "--probabilities")).out.splitlines())
    assert (entry["text1"], entry["text2"]) == ("a cat", ["the", "dog"])
    assert entry["label"] == max(entry["probabilities"], key=entry["probabilities"].get)
    for name in ("again.tsv", "again.csv", "again.jsonl"):  # its own predictions are correct
        ok(run("predict", fitted, tmp_path / "a.tsv", "-o", tmp_path / name))
        assert re.search(r"accuracy +1\.0000", ok(run("score", fitted, tmp_path / name)).out)


def test_a_pair_on_the_command_line(run, fitted):
    answered = ok(run("predict", fitted, "A cat saw.\tThe dog ran."))
    assert [line.split("\t")[1:] for line in answered.out.splitlines()[1:]] == [["A cat saw.", "The dog ran."]]
    assert "line 1: has no tab; expected two texts" in run("predict", fitted, "Only one text.").err


def test_compare(run, model, tmp_path):
    variants = "words,static,elmo,both,output,input+output"
    quick = ("--train", write(tmp_path / "a.tsv"), "--seeds", 1, "--hidden", 6, "--epochs", 1)
    found = ok(run("compare", "entail", model, *quick, "--variants", variants)).out
    assert [row.split()[0] for row in found.splitlines()] == ["variant", *variants.split(",")]


def test_a_label_that_was_not_learned_is_reported(run, fitted):
    rows = "text1\ttext2\tlabel\na\tb\tmaybe\nc\td\tneutral\n"
    assert "never predicted: maybe (1)" in ok(run("score", fitted, "-", stdin=rows)).err


MISTAKES = {
    "no names": ("a\tb\tneutral\n", (), "line 1: names the columns a, b, neutral; it needs two texts"),
    "no label": ("text1\ttext2\na\tb\n", (), "line 1: names the columns text1, text2; it needs a label"),
    "short line": ("text1\ttext2\tlabel\na\tb\tc\na\tb\n", (), "line 3: has no `label`"),
    "long line": ("text1\ttext2\tlabel\na\tb\tc\td\n", (), "line 2: 4 columns; the first row names 3"),
    "missing field": ('{"sentence1": "a", "gold_label": "x"}\n', (), "line 1: has sentence1, gold_label; it needs two"),
    "bad label": ('{"text1": "a", "text2": "b", "label": 0.5}\n', (), "line 1: `label` is 0.5; it must be a string"),
    "no JSON": ('{"text1": "a",\n', (), "line 1: is not JSON"),
    "one label": ("text1\ttext2\tlabel\na\tb\tx\nc\td\tx\n", (), "every example has the label 'x'"),
    "undecided": ("text1\ttext2\tlabel\na\tb\t-\n", (), "every pair has the label -"),
    "bad form": ("", ("--form", "conll"), "form is 'conll'; accepted: auto, tsv, csv, jsonl"),
    "bad language": ("text1\ttext2\tlabel\na\tb\tx\nc\td\ty\n", ("--lang", "xx"), "lang is 'xx'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_message_and_leaves_no_files(run, model, tmp_path, mistake):
    text, options, message = MISTAKES[mistake]
    (tmp_path / "train").write_text(text, encoding="utf-8")
    before = sorted(file.name for file in tmp_path.iterdir())
    done = run("fit", "entail", model, "--train", tmp_path / "train", "-o", tmp_path / "out", *QUICK, *options)
    assert done.code == 1
    assert message in done.err and "Traceback" not in done.err
    assert sorted(file.name for file in tmp_path.iterdir()) == before


def test_mistakes_of_predict(run, fitted, tmp_path):
    wrong = run("predict", fitted, "-", "-o", tmp_path / "new.tsv", stdin="a\tb\njust one text\n")
    assert wrong.code == 1 and "line 2: has no tab; expected two texts" in wrong.err
    assert not (tmp_path / "new.tsv").exists()
    assert "can be written as table, csv, jsonl" in run("predict", fitted, "-", "--to", "conll").err

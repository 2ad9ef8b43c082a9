"""Relations on the command line: every form of data, every command, every mistake."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from bilmo.tasks.relate.marks import marked_of

from task_data import related

QUICK = ("--hidden", 6, "--rate", 0.02, "--epochs", 2)
GOOD = "the <e1>cat</e1> saw a <e2>red</e2> cow"


def ok(result):
    assert result.code == 0, result.err
    return result


def write(path, number=30, seed=0):
    """A file in the form that its name says."""
    rows = list(zip(*related(number, seed), strict=True))
    if path.name == "semeval.txt":
        text = "".join(f'{k}\t"{text}"\n{label}\nComment:\n\n' for k, (text, label) in enumerate(rows, start=1))
    elif path.name == "spans.jsonl":
        marked = ((marked_of(text), label) for text, label in rows)
        found = [{"text": m.text, "e1": m.first, "e2": m.second, "relation": label} for m, label in marked]
        text = "".join(json.dumps(row) + "\n" for row in found)
    elif path.suffix == ".jsonl":
        text = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)
    elif path.suffix == ".csv":
        text = "text,label\n" + "".join(f'"{text}","{label}"\n' for text, label in rows)
    else:
        text = "".join(f"{label}\t{text}\n" for text, label in rows)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["semeval.txt", "spans.jsonl", "own.jsonl", "own.csv", "own.tsv"])
def test_fit_score_and_predict_in_every_form(run, model, tmp_path, name):
    train, out = write(tmp_path / name), tmp_path / "out"
    fitted = ok(run("fit", "relate", model, "--train", train, "--test", train, "-o", out, *QUICK))
    assert re.search(r"macro F1 +[01]\.", fitted.out) and re.search(r"\nHas-Colour +[01]\.", fitted.out)
    assert "Has-Colour(e1,e2) " in fitted.out and "true \\ predicted" in fitted.out
    assert ok(run("score", out, train)).out.splitlines()[0] in fitted.out
    answered = ok(run("predict", out, train))
    rows = [line.split("\t") for line in answered.out.splitlines()]
    assert rows[0] == ["label", "text"] and [row[1] for row in rows[1:]] == related(30)[0]


@pytest.fixture
def fitted(run, model, tmp_path):
    train = write(tmp_path / "a.txt")
    ok(run("fit", "relate", model, "--train", train, "-o", tmp_path / "task", "--elmo-at", "both", *QUICK))
    return tmp_path / "task"


def test_predictions_in_every_form(run, fitted, tmp_path):
    raw = f'{GOOD}\n\n"<e2>漢字</e2>", <e1>x y</e1>\n'
    answered = ok(run("predict", fitted, "-", stdin=raw))
    assert "read as marked texts alone, one per line" in answered.err
    rows = [line.split("\t") for line in answered.out.splitlines()]
    assert [row[1] for row in rows[1:]] == [GOOD, '"<e2>漢字</e2>", <e1>x y</e1>']
    table = list(
        csv.reader(io.StringIO(ok(run("predict", fitted, "-", "--to", "csv", "--probabilities", stdin=raw)).out))
    )
    assert table[0] == ["label", "Has-Colour(e1,e2)", "Has-Colour(e2,e1)", "Other", "text"]
    assert all(sum(map(float, row[1:4])) == pytest.approx(1, abs=1e-3) for row in table[1:])
    asked = tmp_path / "asked.jsonl"
    asked.write_text('{"tokens": ["a", "red", "cat"], "e1": [1, 2], "e2": [2, 3]}\n', encoding="utf-8")
    (entry,) = map(json.loads, ok(run("predict", fitted, asked, "--to", "jsonl", "--probabilities")).out.splitlines())
    assert (entry["tokens"], entry["e1"], entry["e2"]) == (["a", "red", "cat"], [1, 2], [2, 3])
    assert entry["label"] == max(entry["probabilities"], key=entry["probabilities"].get)
    assert ok(run("predict", fitted, asked)).out.endswith("\ta <e1>red</e1> <e2>cat</e2>\n")
    for name in ("again.tsv", "again.csv", "again.jsonl"):  # its own predictions are correct
        ok(run("predict", fitted, tmp_path / "a.txt", "-o", tmp_path / name))
        assert re.search(r"accuracy +1\.0000", ok(run("score", fitted, tmp_path / name)).out)


def test_a_text_on_the_command_line(run, fitted):
    assert ok(run("predict", fitted, GOOD)).out.endswith(f"\t{GOOD}\n")
    assert "line 1: the mark <e1> is missing: 'the cat saw'" in run("predict", fitted, "the cat saw").err


def test_compare(run, model, tmp_path):
    variants = "words,elmo,both,output,input+output"
    quick = ("--train", write(tmp_path / "a.txt"), "--seeds", 1, "--hidden", 6, "--epochs", 1)
    found = ok(run("compare", "relate", model, *quick, "--variants", variants)).out
    assert [row.split()[0] for row in found.splitlines()] == ["variant", *variants.split(",")]


def test_a_relation_that_was_not_learned_is_reported(run, fitted):
    assert "never predicted: New(e1,e2) (1)" in ok(run("score", fitted, "-", stdin=f"New(e1,e2)\t{GOOD}\n")).err


MISTAKES = {
    "marks missing": (f"x\t{GOOD}\ny\tno marks\n", (), "line 2: the mark <e1> is missing"),
    "marks crossing": ('1\t"<e1>a <e2>b</e1></e2>"\nOther\n', (), "line 1: the marks of e1 and e2 cross each other"),
    "unknown label": (f'1\t"{GOOD}"\nCause(e1,e3)\n', (), "line 2: unknown label 'Cause(e1,e3)'"),
    "no label": (f'1\t"{GOOD}"\n\n', (), "line 1: the sentence has no relation in the next line"),
    "no relations": (f"{GOOD}\n", (), "no form with relations was recognized in its first line"),
    "missing field": ('{"text": "a"}\n', (), "line 1: has no `label`"),
    "offsets outside": (
        '{"text": "a b", "e1": [0, 1], "e2": [2, 9], "label": "x"}\n',
        (),
        "line 1: e2 is [2, 9]; it must be a part of the text, which has 3 characters",
    ),
    "one label": (f"x\t{GOOD}\nx\t{GOOD}\n", (), "every example has the label 'x'"),
    "bad form": ("", ("--form", "conll"), "form is 'conll'; accepted: auto, semeval, tab"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_message_and_leaves_no_files(run, model, tmp_path, mistake):
    text, options, message = MISTAKES[mistake]
    (tmp_path / "train").write_text(text, encoding="utf-8")
    before = sorted(file.name for file in tmp_path.iterdir())
    done = run("fit", "relate", model, "--train", tmp_path / "train", "-o", tmp_path / "out", *QUICK, *options)
    assert done.code == 1
    assert message in done.err and "Traceback" not in done.err
    assert sorted(file.name for file in tmp_path.iterdir()) == before


def test_a_mistake_of_predict_writes_nothing(run, fitted, tmp_path):
    wrong = run("predict", fitted, "-", "-o", tmp_path / "new.tsv", stdin=f"{GOOD}\nno marks\n")
    assert wrong.code == 1 and "line 2: the mark <e1> is missing" in wrong.err
    assert not (tmp_path / "new.tsv").exists()

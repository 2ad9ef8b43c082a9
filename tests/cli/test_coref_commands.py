"""Coreference on the command line: every form of data, every command, every mistake."""

from __future__ import annotations

import json
import re

import pytest

from bilmo.tasks.data import documents as forms
from bilmo.tasks.data.documents import Document

from task_data import documents

QUICK = ("--hidden", 6, "--rate", 0.02, "--epochs", 2, "--span-width", 3, "--vectors", "scratch")


def ok(result):
    assert result.code == 0, result.err
    return result


def write(path, number=12, seed=0):
    """A file in the form that its name says."""
    rows = list(zip(*documents(number, seed), strict=True))
    if path.suffix == ".jsonl":
        text = "".join(json.dumps({"sentences": a, "clusters": b}) + "\n" for a, b in rows)
    else:
        lines = [line for k, (a, b) in enumerate(rows, start=1) for line in forms.conll(Document(a), b, k)]
        text = "\n".join(lines) + "\n"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["a.conll", "a.jsonl", "a.txt"])
def test_fit_score_and_predict_in_every_form(run, model, tmp_path, name):
    train, out = write(tmp_path / name), tmp_path / "out"
    fitted = ok(run("fit", "coref", model, "--train", train, "--test", train, "-o", out, *QUICK))
    for measure in ("mean F1", "MUC F1", "B3 F1", "CEAF-e F1", "mean F1 without singletons"):
        assert re.search(rf"{measure} +[01]\.\d", fitted.out), measure
    assert ok(run("score", out, train)).out.splitlines()[0] in fitted.out
    again = tmp_path / "again.conll"
    assert "12 predictions" in ok(run("predict", out, train, "-o", again)).out
    scored = json.loads(ok(run("score", out, again, "--json")).out)  # predictions agree with themselves
    assert scored["value"] == 1.0 or scored["labels"][0]["true"] == 0
    rows = [json.loads(row) for row in ok(run("predict", out, train, "--to", "jsonl")).out.splitlines()]
    assert [row["sentences"] for row in rows] == documents(12)[0]


def test_raw_text(run, model, tmp_path):
    train, out = write(tmp_path / "a.conll", 30), tmp_path / "out"
    ok(run("fit", "coref", model, "--train", train, "-o", out, *QUICK, "--epochs", 8))
    text = "The cat saw a dog. Then the cat saw the cow."
    said = ok(run("predict", out, text))
    assert "is read as plain text, one document, split as en" in said.err
    lines = said.out.splitlines()
    assert [re.sub(r"\[|\]\d+", "", line) for line in lines[:2]] == [
        "The cat saw a dog .",
        "Then the cat saw the cow .",
    ]
    (tmp_path / "story.txt").write_text(text.replace(". ", ".\n"), encoding="utf-8")
    row = json.loads(ok(run("predict", out, tmp_path / "story.txt", "--to", "jsonl", "--probabilities")).out)
    assert row["text"] == text.replace(". ", ".\n")
    mentions = [mention for cluster in row["mentions"] for mention in cluster]
    assert mentions and all(row["text"][m["begin"] : m["end"]] == m["text"] for m in mentions)
    assert [len(cluster) for cluster in row["probabilities"]] == [len(cluster) for cluster in row["clusters"]]
    conll = ok(run("predict", out, tmp_path / "story.txt", "--to", "conll")).out
    assert conll.startswith("#begin document (document 1); part 000\n") and conll.endswith("#end document\n")
    assert ok(run("predict", out, "-", stdin="")).out in ("", "\n")


def test_compare(run, model, tmp_path):
    train = write(tmp_path / "a.conll")
    table = ok(run("compare", "coref", model, "--train", train, "--seeds", 1, "--variants", "words,both", *QUICK)).out
    assert "mean F1" in table and "words" in table and "both" in table


BAD = {
    "text": ("a.txt", "Anna sat.\n", (), "is plain text, which has no clusters"),
    "bracket": (
        "a.conll",
        "#begin document (x)\nx 0 0 Anna - (1\n#end document\n",
        (),
        "line 2: the bracket of cluster 1",
    ),
    "no clusters": ("a.jsonl", '{"sentences": [["a"]], "clusters": []}\n', (), "no document has a cluster"),
    "form": ("a.conll", "", ("--form", "csv"), "form is 'csv'; accepted: auto, conll, jsonl, text"),
    "width": ("a.conll", "", ("--span-width", "0"), "span_width is 0; it must be from 1 to 50"),
}


@pytest.mark.parametrize("name", BAD)
def test_mistakes(run, model, tmp_path, name):
    file, text, more, says = BAD[name]
    (tmp_path / file).write_text(text, encoding="utf-8")
    done = run("fit", "coref", model, "--train", tmp_path / file, "-o", tmp_path / "out", *more)
    assert done.code == 1 and says in done.err and "Traceback" not in done.err
    assert not (tmp_path / "out").exists()

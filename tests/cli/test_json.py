"""Results for programs: `--json` prints one JSON value, with the numbers of the tables."""

from __future__ import annotations

import json
import math
import re

import pytest

import bilmo
from program import program
from small_runs import write_text

TRAIN = ("train", "text.txt", "-o", "model", "--recipe", "recipe.toml", "--epochs", "0.3", "-q")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("json")
    write_text(folder)
    assert program(folder, *TRAIN).code == 0
    return folder


def found(folder, *arguments):
    """The JSON that a command prints, and what it prints without it."""
    done, plain = program(folder, *arguments, "--json"), program(folder, *arguments)
    assert (done.code, plain.code) == (0, 0), done.err
    return json.loads(done.out), plain.out


def test_info(folder):
    data, plain = found(folder, "info", "model")
    assert data["model"] == "model" and data["layout"] in plain
    assert f"{data['parameters']['all']:,}" in plain
    assert data["config"]["layers"] == 2 and data["notes"] == []


def test_models(folder):
    data, plain = found(folder, "models")
    assert [model["name"] for model in data] == ["en", "zh"] and all(model["folder"] in plain for model in data)


def test_evaluate(folder):
    data, plain = found(folder, "evaluate", "model", "text.txt", "--lang", "spaces")
    expected = bilmo.evaluate(folder / "model", folder / "text.txt", lang="spaces")
    assert data["perplexity"] == pytest.approx(expected.perplexity) and data["known"] == pytest.approx(expected.known)
    assert (data["words"], data["unknown"], data["lang"]) == (expected.words, expected.unknown, "spaces")
    assert f"{data['perplexity']['mean']:.2f}" in plain


def test_a_warning_does_not_disturb_the_json(folder):
    (folder / "foreign.txt").write_text("α β γ\n", encoding="utf-8")
    done = program(folder, "evaluate", "model", "foreign.txt", "--lang", "spaces", "--json")
    assert json.loads(done.out)["unknown"] == 3 and done.err.startswith("warning: ")


def test_similar(folder):
    data, plain = found(folder, "similar", "model", "字", "-n", "3")
    assert data[0]["word"] == "字" and len(data[0]["similar"]) == 3
    rows = [line.split() for line in plain.splitlines()]
    assert [[row["word"], f"{row['cosine']:.3f}"] for row in data[0]["similar"]] == rows


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_score(folder, task):
    if task == "classify":
        rows = [f"{'good' if k % 2 else 'bad'}\tthe cat {'sat' if k % 2 else 'saw'} {k}" for k in range(24)]
        (folder / "data").write_text("\n".join(rows), encoding="utf-8")
    else:
        (folder / "data").write_text("".join(f"{k}\tO\nAnna\tB-PER\nsat\tO\n\n" for k in range(12)), encoding="utf-8")
    quick = ("--epochs", "1", "--hidden", "4", "-q")
    assert program(folder, "fit", task, "model", "--train", "data", "-o", task, *quick).code == 0
    data, plain = found(folder, "score", task, "data")
    assert data["measure"] == ("accuracy" if task == "classify" else "span F1")
    assert re.search(rf"^{data['measure']} +{data['value']:.4f}$", plain, re.MULTILINE)
    assert {row["label"] for row in data["labels"]} == ({"good", "bad"} if task == "classify" else {"PER"})
    assert sum(row["times"] for row in data["confusion"]) == (24 if task == "classify" else 0)
    assert all(math.isfinite(value) for value in data["details"].values())

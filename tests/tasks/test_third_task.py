"""A task is a folder and one line: `tests/tasks/count` is fitted, saved, loaded, measured and compared by code that
knows only its specification."""

from __future__ import annotations

import pickle
import random
import re
import subprocess
import sys

import pytest
import sklearn.base

import bilmo
from bilmo.cli.tasks.task_options import docs_of
from bilmo.errors import ConfigError, TextError
from bilmo.tasks import all as tasks
from bilmo.tasks import folder
from bilmo.tasks.core import compare
from bilmo.tasks.core.spec import Dataset
from tasks.count.estimator import TokenCounter
from tasks.count.task import COUNT, CountSettings

QUICK = {"hidden": 16, "rate": 0.02, "epochs": 3, "dropout": 0.0}


@pytest.fixture(autouse=True)
def one_line(monkeypatch):
    """The one line."""
    monkeypatch.setattr(tasks, "TASKS", (*tasks.TASKS, COUNT))


def made(number, seed=0):
    draw = random.Random(seed)
    pairs = [tuple(" ".join(["cat"] * draw.randint(0, 4)) for _ in range(2)) for _ in range(number)]
    return pairs, [len(" ".join(pair).split()) % 3 for pair in pairs]


def write(path, number, seed=0):
    rows = zip(*made(number, seed), strict=True)
    path.write_text("".join(f"{a}\t{b}\t{n}\n" for (a, b), n in rows), encoding="utf-8")
    return path


def test_it_is_fitted_saved_loaded_and_compared_in_python(model, tmp_path):
    elmo = bilmo.load(model)
    settings = QUICK | {"epochs": 60, "patience": 60, "depth": 1}
    task = TokenCounter(elmo, **settings).fit(*made(60), dev=made(60))
    assert task.score(*made(60)) > 0.9
    assert sklearn.base.clone(task).get_params() == task.get_params() and task.get_params()["batch"] == 8
    folder.save(task, tmp_path / "task", model=str(model))
    loaded = folder.load(tmp_path / "task")
    new = made(20, seed=1)[0]
    assert type(loaded) is TokenCounter
    assert loaded.predict(new) == task.predict(new) == pickle.loads(pickle.dumps(task)).predict(new)
    together, alone = task.confidence(new), [task.confidence([pair])[0] for pair in new]
    assert all(a == pytest.approx(b, abs=1e-5) for a, b in zip(together, alone, strict=True))
    outcomes = [
        event
        for event in compare.compare(
            COUNT, elmo, train=Dataset(*made(30)), variants=["words", "both", "1"], seeds=[1], chars=4, **QUICK
        )
        if isinstance(event, compare.Outcome)
    ]
    assert [(outcome.name, outcome.inputs) for outcome in outcomes] == [
        ("words", "word vectors + 4 character filters"),
        ("both", "word vectors + 4 character filters + ELMo (weighted)"),
        ("layer 1", "ELMo layer 1"),
    ]
    with pytest.raises(TextError, match="accepted: 0, 1, 2"):
        task.score(new, [7] * 20)
    with pytest.raises(ConfigError, match="depth is -1"):
        TokenCounter(elmo, depth=-1).fit(*made(9))


def test_it_has_its_own_commands_options_and_help(run, model, tmp_path):
    train, test = write(tmp_path / "a.tsv", 40), write(tmp_path / "b.tsv", 12, seed=2)
    out = tmp_path / "out"
    quick = ("--hidden", 16, "--rate", 0.02, "--epochs", 2)
    fitted = run("fit", "count", model, "--train", train, "--test", test, "-o", out, "--depth", 2, *quick)
    assert fitted.code == 0, fitted.err
    assert "counting is easy" in fitted.err and "macro F1" in fitted.out
    again = run("fit", "count", model, "--train", train, "--test", test, "-o", out, "--depth", 2, *quick)
    assert again.code == 0 and "loss" not in again.err
    other = run("fit", "count", model, "--train", train, "-o", out, "--depth", 1, *quick)
    assert other.code == 1 and "depth" in other.err
    predicted = run("predict", out, test, "--probabilities")
    assert predicted.code == 0 and "is read as pairs" in predicted.err
    rows = [line.split("\t") for line in predicted.out.splitlines()]
    assert [tuple(row[:2]) for row in rows] == made(12, seed=2)[0]
    assert all(sum(map(float, row[3:])) == pytest.approx(1, abs=1e-3) for row in rows)
    assert run("predict", out, test, "-o", tmp_path / "p.jsonl").code == 0
    assert "can be written as table, jsonl" in run("predict", out, test, "-o", tmp_path / "p.csv").err
    assert re.search(r"accuracy +\d", run("score", out, test).out)
    compared = run("compare", "count", model, "--train", train, "--variants", "words,both", "--seeds", 1, *quick)
    assert compared.code == 0 and re.search(r"\nboth +word vectors \+ ELMo \(weighted\) ", compared.out)
    assert "line 1: 1 columns" in run("score", out, "-", stdin="one\n").err
    assert "depth is -2" in run("fit", "count", model, "--train", train, "-o", tmp_path / "x", "--depth", -2).err


def test_help_comes_from_the_specifications(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    listed = run("fit", "--help").out
    assert "count" in listed and "the number of tokens in two texts, modulo 3" in listed and "classify" in listed
    shown = run("fit", "count", "--help").out
    assert "--depth" in shown and docs_of(CountSettings)["depth"] in shown and "--column" not in shown
    assert "Pairs per step" in shown and "[default: 8]" in shown and "pairs (two texts and their answer" in shown
    assert "--column" in run("fit", "tag", "--help").out and "--depth" not in run("fit", "tag", "--help").out
    compared = run("compare", "count", "--help").out
    assert "--depth" in compared and "--elmo-at" not in compared and "--seed " not in compared
    unknown = run("fit", "sing", "model")
    assert unknown.code == 2 and "sing" in unknown.err


@pytest.mark.parametrize("task", [*tasks.TASKS, COUNT], ids=lambda task: task.name)
def test_every_setting_is_documented(task):
    assert docs_of(task.settings).keys() >= task.settings.__dataclass_fields__.keys()


def test_without_its_line_a_saved_task_is_unknown(tiny, tmp_path, monkeypatch):
    folder.save(TokenCounter(tiny, **QUICK).fit(*made(20)), tmp_path / "task")
    others = tuple(task for task in tasks.TASKS if task is not COUNT)
    monkeypatch.setattr(tasks, "TASKS", others)
    names = ", ".join(task.name for task in others)
    with pytest.raises(ConfigError, match=rf"contains the task 'count'; this version has only {names}\."):
        folder.load(tmp_path / "task", elmo=tiny)


def test_help_does_not_wait_for_torch():
    program = (
        "import sys\nfrom bilmo.cli.app import app\n"
        "try:\n    app(['fit', 'tag', '--help'])\nexcept SystemExit:\n    pass\n"
        "print('torch' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "False" and "--column" in done.stdout

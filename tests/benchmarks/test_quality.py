"""The quality benchmark runs, resumes after the recorded outcomes, and shows all of them."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from bilmo.store import model_folder as folder
from bilmo.tasks.classify.task import CLASSIFY
from bilmo.tasks.core.spec import Dataset
from bilmo.tasks.tag.task import TAG

from task_data import made, sentences, texts

PLACE = Path(__file__).parents[2] / "benchmarks" / "quality"


def program(name, monkeypatch):
    """A program of the benchmark, with its own module `data`."""
    monkeypatch.syspath_prepend(str(PLACE))
    monkeypatch.delitem(sys.modules, "data", raising=False)
    spec = importlib.util.spec_from_file_location(f"quality_{name}", PLACE / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, f"quality_{name}", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def quality(tmp_path, monkeypatch):
    """The benchmark with two questions on tiny data."""
    module = program("run", monkeypatch)
    (tmp_path / "glove.txt").write_text("cat 0.1 0.2 0.3\nred 0.3 0.1 0.2\n", encoding="utf-8")
    for number in (0, 1):
        folder.write(made(number), tmp_path / f"model{number}")
    data = module.data
    sets = {
        "sst5": lambda: data.DataSet("sst5", Dataset(*texts(20)), None, Dataset(*texts(6, seed=1))),
        "wikigold": lambda: data.DataSet(
            "wikigold", *(Dataset(*sentences(n, seed)) for n, seed in ((16, 0), (5, 1), (5, 2)))
        ),
    }
    questions = (
        module.Question("sst5", CLASSIFY, "sst5", ("words", "both"), {"head": "linear"}),
        module.Question("wikigold", TAG, "wikigold", ("words", "elmo", "both"), {"head": "linear"}),
    )
    monkeypatch.setattr(data, "VECTORS", tmp_path / "glove.txt")
    monkeypatch.setattr(data, "SETS", sets)
    monkeypatch.setattr(module, "QUESTIONS", questions)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    return module


def records(tmp_path):
    return [json.loads(row) for row in (tmp_path / "quality.jsonl").read_text("utf-8").splitlines()]


def test_it_resumes_and_shows_all_recorded_outcomes(quality, tmp_path, capsys):
    few = ["--seeds", "1", "--epochs", "1"]
    first, second = (str(tmp_path / f"model{number}") for number in (0, 1))
    quality.main([first, *few, "--only", "sst5"])
    quality.main([first, *few, "--only", "wikigold"])
    assert len(records(tmp_path)) == 5
    page = (tmp_path / "quality.md").read_text("utf-8")
    assert "## sst5" in page and "## wikigold" in page
    assert "`words` has dropout 0.2, the others 0.5" in page and "character CNN too (128 filters)" in page
    assert "| words | word vectors + 128 character filters |" in page
    assert "| both | word vectors + 128 character filters + ELMo (weighted) |" in page
    assert "| elmo | ELMo (weighted) |" in page
    assert "no published figure for this split" in page and "Published: 0.3270" in page
    assert page.count("reached with `both`") == 2
    capsys.readouterr()
    quality.main([first, *few])
    assert len(records(tmp_path)) == 5 and "epoch" not in capsys.readouterr().out
    quality.main([second, *few])  # `words` does not depend on the model
    assert [entry["key"]["variant"] for entry in records(tmp_path)[5:]] == ["both", "elmo", "both"]
    filters = {entry["key"]["variant"]: entry["key"]["settings"]["chars"] for entry in records(tmp_path)}
    assert filters == {"words": 128, "both": 128, "elmo": 0}
    assert records(tmp_path)[0]["key"]["settings"]["hidden"] == 200


def test_a_slice_saves_nothing(quality, tmp_path, capsys):
    quality.main([str(tmp_path / "model0"), "--examples", "8", "--seeds", "1", "--epochs", "1", "--only", "sst5"])
    assert "## sst5" in capsys.readouterr().out
    assert not (tmp_path / "quality.jsonl").exists() and not (tmp_path / "quality.md").exists()


def test_an_epoch_with_stored_layers_and_without_gives_the_same_result(tmp_path, monkeypatch, capsys):
    speed = program("speed", monkeypatch)
    folder.write(made(0), tmp_path / "model")
    made_up = speed.data.DataSet("ewt", *(Dataset(*sentences(n, seed)) for n, seed in ((40, 0), (8, 1), (5, 2))))
    monkeypatch.setattr(speed.data, "ewt", lambda: made_up)
    monkeypatch.setattr(speed, "RESULTS", tmp_path)
    speed.main([str(tmp_path / "model")])
    rows = [row.split(" | ") for row in (tmp_path / "epoch.md").read_text("utf-8").splitlines() if "**" in row]
    assert [row[2] for row in rows] == ["bilstm-crf", "linear"]
    for row in rows:
        slow, fast, ratio = (float(value.strip("*x")) for value in row[3:6])
        assert min(slow, fast, ratio) >= 0  # printed with one decimal, so each may be 0.0
        kept, anew = row[6].strip(" |").split()
        assert kept == anew
    (tmp_path / "epoch.md").unlink()
    speed.main([str(tmp_path / "model"), "--examples", "8"])
    assert "bilstm-crf" in capsys.readouterr().out and not (tmp_path / "epoch.md").exists()

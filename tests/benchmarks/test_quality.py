"""The quality benchmark runs, resumes after the recorded outcomes, and shows all of them."""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from bilmo.store import model_folder as folder
from bilmo.tasks.classify.task import CLASSIFY
from bilmo.tasks.core.spec import Dataset
from bilmo.tasks.tag.task import TAG

from task_data import made, sentences, texts

PLACE = Path(__file__).parents[2] / "benchmarks" / "quality"


def program(name, monkeypatch):
    """A program of the benchmark, with its own modules."""
    monkeypatch.syspath_prepend(str(PLACE))
    for module in ("data", "plan", "tables"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    spec = importlib.util.spec_from_file_location(f"quality_{name}", PLACE / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, f"quality_{name}", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def quality(tmp_path, monkeypatch):
    """The benchmark with two data sets, which are tiny."""
    module = program("run", monkeypatch)
    (tmp_path / "glove.txt").write_text("cat 0.1 0.2 0.3\nred 0.3 0.1 0.2\n", encoding="utf-8")
    for number in (0, 1):
        folder.write(made(number), tmp_path / f"model{number}")
    data, plan = module.data, sys.modules["plan"]
    sets = {
        "sst5": lambda: data.DataSet("sst5", Dataset(*texts(20)), None, Dataset(*texts(6, seed=1))),
        "roles": lambda: data.DataSet(
            "roles", *(Dataset(*sentences(n, seed)) for n, seed in ((16, 0), (5, 1), (5, 2)))
        ),
    }
    measured = {
        "sst5": plan.Measured(CLASSIFY, {"head": "linear"}, 0.068),
        "roles": plan.Measured(TAG, {"hidden": 8}),
    }
    fit = plan.Fit
    parts = {
        "table1": [fit(name, variant, 1) for name in measured for variant in plan.TABLE_1],
        "table2": [fit("roles", "top", 1), fit("roles", "both", 1, l2=1.0), fit("roles", "both", 1)],
        "table3": [fit("roles", "input+output", 1), fit("roles", "both", 1)],
        "figure1": [fit("roles", variant, 1, share) for variant in ("words", "both") for share in (0.3, 1.0)],
    }
    monkeypatch.setattr(data, "VECTORS", tmp_path / "glove.txt")
    monkeypatch.setattr(data, "SETS", sets)
    for place in (module, module.tables):
        monkeypatch.setattr(place, "DATA_SETS", measured)
    monkeypatch.setattr(module, "PARTS", parts)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    return module


def records(tmp_path):
    return [json.loads(row) for row in (tmp_path / "quality.jsonl").read_text("utf-8").splitlines()]


def row_of(page, *start):
    """The cells of the first row of a table that starts with these cells."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"]
    return next(row for row in rows if tuple(row[: len(start)]) == start)


def test_it_resumes_and_shows_all_recorded_fits(quality, tmp_path, capsys):
    first, second = (str(tmp_path / f"model{number}") for number in (0, 1))
    quality.main([first, "--epochs", "1", "--only", "table1", "--data", "sst5"])
    page = (tmp_path / "quality.md").read_text("utf-8")
    assert len(records(tmp_path)) == 3 and "not measured" in row_of(page, "roles", "tag")
    quality.main([first, "--epochs", "1"])
    assert len(records(tmp_path)) == 6 + 2 + 1 + 2  # a fit of several tables is trained once
    page = (tmp_path / "quality.md").read_text("utf-8")
    values = {(row["data"], row["variant"]): row["value"] for row in records(tmp_path) if row["data"] == "sst5"}
    words, static, both = (values["sst5", variant] for variant in ("words", "static", "both"))
    reduced = [f"{(both - base) / (1 - base) if base < 1 else 0:.1%}" for base in (words, static)]
    cells = [f"{value:.3f} ({value:.3f})" for value in (words, static, both)]
    assert row_of(page, "sst5", "classify") == ["sst5", "classify", "accuracy", *cells, *reduced, "6.8%"]
    assert row_of(page, "sst5", "0.327")[-1] == f"{words - 0.327:+.3f}"
    capsys.readouterr()
    quality.main([first, "--epochs", "1"])
    assert len(records(tmp_path)) == 11 and "epoch" not in capsys.readouterr().out
    quality.main([second, "--epochs", "1", "--only", "table1"])  # `words` does not depend on the model
    assert [row["variant"] for row in records(tmp_path)[11:]] == ["static", "both"] * 2
    assert {row["settings"]["chars"] for row in records(tmp_path)} == {128}
    assert records(tmp_path)[0]["settings"]["hidden"] == 200


def test_figures_show_shares_and_learned_weights(quality, tmp_path):
    quality.main([str(tmp_path / "model0"), "--epochs", "1"])
    page = (tmp_path / "quality.md").read_text("utf-8")
    by_share = {(row["variant"], row["share"]): row for row in records(tmp_path) if row["settings"]["l2"] != 1}
    some, all_of_it = (by_share["words", share]["value"] for share in (0.3, 1.0))
    assert row_of(page, "roles", "words")[2:] == [
        *["not measured"] * 3, f"{some:.3f} ({some:.3f})", f"{all_of_it:.3f} ({all_of_it:.3f})"
    ]  # fmt: skip
    mixes = {mix["where"]: mix["shares"] for mix in by_share["input+output", 1.0]["mixes"]}
    assert row_of(page, "roles", "output")[2:] == [f"{share:.2f}" for share in mixes["output"]]
    for name in ("shares.svg", "mixes.svg"):
        assert ElementTree.parse(tmp_path / name).getroot().tag.endswith("svg")
        assert f"]({name})" in page
    assert (tmp_path / "shares.svg").read_text("utf-8").count("<circle") == 4


def test_a_fit_ends_at_the_cap(quality, tmp_path):
    quality.main([str(tmp_path / "model0"), "--only", "table1", "--data", "sst5", "--minutes", "0"])
    assert all(row["capped"] and row["epochs"] == 0 for row in records(tmp_path))
    assert "3 of 3 fits: sst5, words, seed 1;" in (tmp_path / "quality.md").read_text("utf-8")


def test_a_slice_saves_nothing(quality, tmp_path, capsys):
    model = str(tmp_path / "model0")
    quality.main([model, "--examples", "8", "--epochs", "1", "--only", "table1", "--data", "sst5"])
    assert "sst5, both, seed 1: accuracy" in capsys.readouterr().out
    assert not (tmp_path / "quality.jsonl").exists() and not (tmp_path / "quality.md").exists()


def test_larger_shares_contain_smaller_ones(quality):
    some = Dataset(list(range(100)), list(range(100)))
    shares = [quality.data.share_of(some, share) for share in (0.001, 0.1, 0.5, 1.0)]
    assert [len(share.examples) for share in shares] == [1, 10, 50, 100]
    for small, large in itertools.pairwise(shares):
        assert set(small.examples) < set(large.examples) and list(large.examples) == sorted(large.answers)


def test_the_cost_of_a_fit(tmp_path, monkeypatch):
    cost = program("cost", monkeypatch)
    folder.write(made(0), tmp_path / "model")
    made_up = cost.data.DataSet("sst5", Dataset(*texts(20)), None, Dataset(*texts(6, seed=1)))
    monkeypatch.setitem(cost.data.SETS, "sst5", lambda: made_up)
    found = cost.worker(str(tmp_path / "model"), "sst5", None)
    assert found["words"] == sum(len(text.split()) for text in made_up.train.examples)
    assert found["epochs"] > 0 and min(found["minutes"], found["trained"], found["predicted"]) > 0
    row = cost.markdown([found | {"data": "sst5", "gigabytes": 0.5}]).splitlines()[-1]
    assert row.startswith(f"| sst5 | {found['words']} | {found['epochs']} |") and "0.5 GB" in row


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


def test_a_word_of_a_transformer_is_the_mean_of_its_pieces(monkeypatch):
    monkeypatch.syspath_prepend(str(PLACE))
    for module in ("run", "senses"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    transformer = program("transformer", monkeypatch)
    hidden = np.arange(12, dtype=np.float32).reshape(1, 6, 2)  # one layer, six pieces
    found = transformer.means(hidden, [None, 0, 0, 1, 1, None], 3)
    assert found.tolist() == [[[3, 4], [7, 8], [0, 0]]]  # the third word was cut off

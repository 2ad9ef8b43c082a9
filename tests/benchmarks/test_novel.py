"""The benchmark of time to quality: its table, its speeds, and that it resumes from finished runs."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from small_runs import recipe, threads, write_text

PLACE = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def novel(tmp_path, monkeypatch):
    """The benchmark on a tiny text, with tiny recipes."""
    monkeypatch.syspath_prepend(str(PLACE))
    spec = importlib.util.spec_from_file_location("novel_benchmark", PLACE / "novel.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "TEXT", write_text(tmp_path))
    monkeypatch.setattr(module, "HERE", tmp_path)
    monkeypatch.setattr(module, "recipe_of", lambda changes: recipe(tmp_path, **changes))
    monkeypatch.setattr(
        module, "OLD", {"optimizer": "adagrad", "rate": 0.2, "decay": False, "patience": 0, "epochs": 5.0}
    )
    monkeypatch.setattr(module, "EVALUATE_EVERY", {"old": 10, "new": 10})
    monkeypatch.setattr(module, "MEASURED", 12)
    (tmp_path / "results").mkdir()
    return module


def test_the_best_evaluation_up_to_the_first_at_or_after_a_step(novel):
    found = {10: 9.0, 20: 5.0, 30: 7.0, 40: 4.0}
    assert [novel.best(found, step) for step in (5, 10, 11, 30, 31, 50)] == [9.0, 9.0, 5.0, 5.0, 4.0, 4.0]


def test_the_table_shows_finished_runs_and_nothing_is_trained_twice(novel, tmp_path, monkeypatch, capsys):
    run = tmp_path / "run"
    run.mkdir()
    (run / "speeds.json").write_text('{"old": [0.5, 13.0], "new": [1.0, 13.0]}', encoding="utf-8")
    with threads(1):
        novel.main(run)
        logged = {
            name: [json.loads(row) for row in (run / name / "train.jsonl").read_text("utf-8").splitlines()]
            for name in ("old", "new-10")
        }
        found = {name: [row for row in rows if row["event"] == "evaluation"] for name, rows in logged.items()}
        assert [row["number"] for row in found["old"]] == [10, 20, 30]  # 60 minutes at half a step per minute
        table = (tmp_path / "results" / "novel.md").read_text("utf-8")
        known = {name: novel.of_known_words(run / name) for name in found}
        assert f"| 60 | {min(row['mean'] for row in found['old']):.1f} | {known['old']:.1f} |  |" in table
        mine = f"{found['new-10'][0]['mean']:.1f} | {known['new-10']:.1f}"
        assert f"| 10 | {found['old'][0]['mean']:.1f} |  | {mine} |" in table
        monkeypatch.setattr(novel, "train", lambda *_: pytest.fail("trained again"))
        capsys.readouterr()
        novel.main(run)
    assert (tmp_path / "results" / "novel.md").read_text("utf-8") == table


def test_a_speed_includes_the_evaluations(novel):
    assert novel.steps_per_minute([9.0, 0.5, 0.5], evaluation=0.0, between=10) == 120
    assert novel.steps_per_minute([9.0, 0.5, 0.5], evaluation=5.0, between=10) == 60


def test_a_speed_is_measured(novel):
    with threads(1):
        speed, epoch = novel.measured_speed({}, 10)
    assert speed > 0 and epoch == pytest.approx(13, abs=1)

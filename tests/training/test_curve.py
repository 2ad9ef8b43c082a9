"""The learning curve of a run, and its log for TensorBoard."""

import importlib.util
import json
import math
import sys
from types import ModuleType
from xml.etree import ElementTree

import pytest

from bilmo.training import curve
from bilmo.training.events import Evaluation, Step
from bilmo.training.run import train
from bilmo.training.tensorboard import tensorboard
from small_runs import log, recipe, write_text

SVG = "{http://www.w3.org/2000/svg}"


def step(number, loss, skipped=False):
    return {"event": "step", "number": number, "loss": loss, "skipped": skipped}


def evaluation(number, mean):
    return {"event": "evaluation", "number": number, "mean": mean}


def written(folder, events, end=""):
    path = folder / "train.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in events) + end, encoding="utf-8")
    return path


def lines_of(picture):
    """The points of each curve, by its class, and all text of a picture that must be well-formed."""
    root = ElementTree.fromstring(picture)
    points = {
        line.get("class"): [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
        for line in root.iter(f"{SVG}polyline")
    }
    return points, " ".join(root.itertext())


def test_the_picture_of_a_run_shows_both_curves_of_its_log(tmp_path):
    text = write_text(tmp_path)
    list(train([text], tmp_path / "model", recipe(tmp_path, evaluate_every=5)))
    points, words = lines_of((tmp_path / "model" / "curve.svg").read_text(encoding="utf-8"))
    steps, evaluations = (log(tmp_path / "model", event) for event in ("step", "evaluation"))
    assert len(points["train"]) == len(steps) and len(points["held-out"]) == len(evaluations) > 3
    assert f"best {min(entry['mean'] for entry in evaluations):.1f}" in words
    # y counts from the top of the picture: a larger y is a lower perplexity.
    heights = [-y for _, y in points["held-out"]]
    means = [entry["mean"] for entry in evaluations]
    assert heights[means.index(min(means))] == min(heights)
    assert [x for x, _ in points["train"]] == sorted(x for x, _ in points["train"])


def test_repeated_steps_count_once_and_skipped_steps_do_not_count(tmp_path):
    path = written(tmp_path, [step(1, 3.0), step(2, 2.0), evaluation(2, 8.0), step(2, 2.0), step(3, 9.0, skipped=True),
                              step(4, 1.0), evaluation(2, 8.0)])  # fmt: skip
    trained, held_out = curve.read(path)
    assert [at for at, _ in trained] == [1, 2, 4]
    assert [value for _, value in trained] == pytest.approx([math.exp(3), math.exp(2), math.e])
    assert held_out == [(2, 8.0)]


def test_a_long_log_is_drawn_as_means_of_its_steps(tmp_path):
    path = written(tmp_path, [step(n, 2.0 + (n % 2)) for n in range(1, 24_001)])
    trained, _ = curve.read(path)
    assert len(trained) == curve.POINTS
    assert {round(math.log(value), 6) for _, value in trained} == {2.5}


@pytest.mark.parametrize(
    "events, end",
    [
        ([], ""),
        ([], '{"event": "st'),
        ([step(1, 2.0)], ""),
        ([evaluation(0, 5.0)], ""),
        ([step(1, None, skipped=True), evaluation(1, None)], ""),
        ([step(1, 2.0), evaluation(1, 1e30)], '{"event": "evaluation", "numb'),
    ],
    ids=["empty", "torn", "one step", "one evaluation", "nothing finite", "huge"],
)
def test_any_log_makes_a_picture(tmp_path, events, end):
    curve.draw(written(tmp_path, events, end), tmp_path / "curve.svg")
    points, _ = lines_of((tmp_path / "curve.svg").read_text(encoding="utf-8"))
    assert all(math.isfinite(value) for line in points.values() for point in line for value in point)


def test_a_line_that_a_power_cut_left_incomplete_does_not_stop_the_run(tmp_path):
    text = write_text(tmp_path)
    events = train([text], tmp_path / "model", recipe(tmp_path))
    for _, _event in zip(range(8), events, strict=False):
        pass
    events.close()
    with (tmp_path / "model" / "train.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"event": "step", "num')
    *_, last = train([text], tmp_path / "model", recipe(tmp_path))
    assert last.progress.finished
    lines = (tmp_path / "model" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    numbers = [entry["number"] for entry in map(json.loads, lines) if entry["event"] == "step"]
    assert set(numbers) == set(range(1, 27))


STEP = Step(number=3, epoch=0, done=0.1, loss=2.0, rate=0.01, words=60, seconds=0.5)
EVALUATION = Evaluation(number=4, forward=7.0, backward=9.0, mean=8.0, known=8.5, words=50, best=True)


def test_tensorboard_gets_every_event_if_it_is_installed(tmp_path, monkeypatch):
    calls = []

    class Writer:
        def __init__(self, folder):
            calls.append(folder)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            calls.append("closed")

        def add_scalar(self, name, value, number):
            calls.append((name, value, number))

    fake = ModuleType("torch.utils.tensorboard.writer")
    monkeypatch.setattr(fake, "SummaryWriter", Writer, raising=False)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", ModuleType("torch.utils.tensorboard"))
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard.writer", fake)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    with tensorboard(tmp_path / "board") as show:
        show(STEP)
        show(EVALUATION)
    assert calls == [
        str(tmp_path / "board"),
        ("loss", 2.0, 3),
        ("rate", 0.01, 3),
        ("words per second", 120.0, 3),
        ("held-out perplexity/forward", 7.0, 4),
        ("held-out perplexity/backward", 9.0, 4),
        ("held-out perplexity/mean", 8.0, 4),
        ("held-out perplexity/known", 8.5, 4),
        "closed",
    ]


def test_without_tensorboard_nothing_is_written_or_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with tensorboard(tmp_path / "board") as show:
        show(STEP)
        show(EVALUATION)
    assert not list(tmp_path.iterdir()) and capsys.readouterr() == ("", "")

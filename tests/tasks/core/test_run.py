"""A fit into a folder keeps the promises of every run: what is published is whole, and no place makes it hang."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import bilmo
from bilmo.errors import DamagedFile, OutputError, TextError
from bilmo.store import atomic, checkpoint
from bilmo.tasks import folder
from bilmo.tasks.classify.classifier import Classifier
from bilmo.tasks.core import run
from bilmo.tasks.core import task_folder as folders
from bilmo.tasks.core.events import Epoch, Finished, Progress
from bilmo.tasks.core.spec import Dataset

from task_data import texts

SMALL = {"hidden": 6, "epochs": 3, "patience": 9, "rate": 0.02}


def fit(model: Path, out: Path, **settings):
    task = Classifier(bilmo.load(model), **SMALL, **settings)
    return run.fit(task, out, Dataset(*texts(30)), None, model=str(model))


@pytest.mark.parametrize("tune", [False, True])
def test_ctrl_c_while_a_better_task_is_published_leaves_one_whole_task(model, tmp_path, monkeypatch, tune):
    """Also where the biLM, a folder in the folder, is trained with the task."""
    replace, pressed = Path.replace, []

    def impatient(self, target):
        replace(self, target)
        if target == tmp_path / "out" / "task.safetensors":
            pressed.append(target)
            if len(pressed) == 2:
                raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", impatient)
    with pytest.raises(KeyboardInterrupt):
        list(fit(model, tmp_path / "out", tune=tune))
    monkeypatch.undo()
    assert len(folder.load(tmp_path / "out").predict(["a cat"])) == 1
    assert not list(tmp_path.rglob("*.partial"))


def test_a_published_task_is_on_the_disk_before_it_replaces_the_old_one(model, tmp_path, monkeypatch):
    synced, sync, replace, torn = set(), atomic.sync, Path.replace, []
    monkeypatch.setattr(atomic, "sync", lambda path: (synced.add(path), sync(path)))
    monkeypatch.setattr(Path, "replace", lambda self, to: (self in synced or torn.append(to), replace(self, to)))
    list(fit(model, tmp_path / "out", tune=True))
    assert not torn and any(path.name == "task.safetensors" for path in synced)


def test_a_run_of_the_version_before_is_refused(model, tmp_path):
    """Its run.json had no format number."""
    description = tmp_path / "out" / "training" / "run.json"
    description.parent.mkdir(parents=True)
    description.write_text('{"task": "classify", "settings": {}, "bilm": "", "vectors": "", "data": ""}')
    with pytest.raises(OutputError, match=r"out: was started by another version of bilmo \(run format 1"):
        list(fit(model, tmp_path / "out"))
    assert [path.name for path in description.parent.iterdir()] != []


@pytest.mark.parametrize("place", ["file.txt/out", "/proc/self/out", "/proc/out"])
def test_a_place_that_cannot_hold_files_is_an_error(model, tmp_path, monkeypatch, place):
    if not Path("/proc/self").is_dir():
        pytest.skip("there is no /proc")
    monkeypatch.chdir(tmp_path)
    Path("file.txt").write_text("x")
    with pytest.raises(OutputError, match="out: cannot be written"):
        list(fit(model, Path(place)))


def test_a_task_that_is_replaced_while_it_is_loaded_is_loaded_again(model, tmp_path, monkeypatch):
    first, second = (Classifier(bilmo.load(model), **SMALL, seed=seed).fit(*texts(30)) for seed in (1, 2))
    out = tmp_path / "out"
    out.mkdir()
    folders.publish(first, out, model=str(model), written={})
    read, replaced = folders._read, []

    def slow(path, config):
        if not replaced:
            replaced.append(folders.publish(second, out, model=str(model), written={}))
        return read(path, config)

    monkeypatch.setattr(folders, "_read", slow)
    assert folder.load(out).confidence(["a cat"])[0] == pytest.approx(second.confidence(["a cat"])[0])


def interrupted(model, out):
    """A run that was stopped after its first epoch; returns its checkpoint."""
    events = fit(model, out)
    next(event for event in events if isinstance(event, Epoch))
    events.close()
    return out / "training" / "checkpoint.safetensors"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda parts: parts["now"].pop("head.last.weight"),
        lambda parts: parts["best"].pop("head.last.weight"),
        lambda parts: parts["optimizer"].pop("0/exp_avg"),
        lambda parts: parts["now"].update({"other": torch.zeros(1)}),
        lambda parts: parts["optimizer"].update({"0/exp_avg": torch.zeros(7)}),
        lambda parts: parts["optimizer"].update({"many/words": torch.zeros(7)}),
        lambda parts: parts.pop("optimizer"),
    ],
    ids=["now", "best", "optimizer", "unused", "shape", "name", "no optimizer"],
)
def test_a_checkpoint_of_another_network_is_refused(model, tmp_path, spoil):
    path = interrupted(model, tmp_path / "out")
    saved = checkpoint.read(path, Progress)
    spoil(saved.parts)
    checkpoint.write(path, saved)
    with pytest.raises(DamagedFile, match=r"belongs to another network .*Remove it to start over"):
        list(fit(model, tmp_path / "out"))


def test_a_run_that_was_stopped_ends_with_the_same_bytes(model, tmp_path):
    list(fit(model, tmp_path / "whole"))
    interrupted(model, tmp_path / "out")
    assert [event.number for event in fit(model, tmp_path / "out") if isinstance(event, Epoch)] == [2, 3]
    for name in ("task.safetensors", "training/checkpoint.safetensors"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_examples_and_answers_may_be_arrays(model, tmp_path):
    some = [text.split() for text in texts(30)[0]]
    data = Dataset(some, np.array([3, 7] * 15))
    *_, end = run.fit(Classifier(bilmo.load(model), **SMALL), tmp_path / "out", data, None, model=str(model))
    assert isinstance(end, Finished)
    same = Dataset(tuple(map(tuple, some)), [np.int64(3), np.int64(7)] * 15)
    events = run.fit(Classifier(bilmo.load(model), **SMALL), tmp_path / "out", same, None, model=str(model))
    assert not any(isinstance(event, Epoch) for event in events)  # it is the same run, which is complete


def test_examples_that_cannot_be_used_leave_no_folder(model, tmp_path):
    bad = Dataset(["a", "b"], ["x"])
    with pytest.raises(TextError, match="2 texts, but labels for 1"):
        list(run.fit(Classifier(bilmo.load(model)), tmp_path / "out", bad, None, model=str(model)))
    assert not (tmp_path / "out").exists()

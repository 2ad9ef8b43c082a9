"""A training run through the command line: made, killed, gone on with, refused."""

import json
import random
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import bilmo
from bilmo.train import recipe as recipes
from bilmo.train.run import train

RECIPE = """
[text]
lang = "spaces"
held_out = 0.1
[network]
char_width = 4
filters = [[1, 4], [2, 8]]
cells = 12
width = 8
[train]
batch = 60
epochs = 2
evaluate_every = 12
save_every = 5
rate = 0.01
dropout = 0.2
"""


def write_text(folder, lines=120):
    chosen = random.Random(1)
    words = ["the", "cat", "dog", "sat", "saw", "a", "mat", "on", "by", "字", "."]
    path = folder / "text.txt"
    rows = [" ".join(chosen.choices(words, k=chosen.randint(1, 12))) for _ in range(lines)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return path


def command(folder, *more):
    return [sys.executable, "-m", "bilmo", "train", "text.txt", "-o", "model", "--recipe", "recipe.toml", *more]


def run(folder, *more):
    return subprocess.run(command(folder, *more), cwd=folder, capture_output=True, text=True)


def log(folder):
    lines = (folder / "model" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]


@pytest.fixture(scope="module", params=["sentences", "stream"])
def undisturbed(request, tmp_path_factory):
    """A finished run, for each way to read text."""
    folder = tmp_path_factory.mktemp(request.param)
    write_text(folder)
    with (folder / "recipe.toml").open("a", encoding="utf-8") as file:
        file.write(f'context = "{request.param}"\naverage = 0.9\nwindow = 5\n')
    done = run(folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_model_of_a_run_loads_embeds_and_scores(undisturbed):
    elmo = bilmo.load(undisturbed / "model")
    assert elmo.layers([["the", "cat", "."]])[0].shape == (3, 3, 16)
    scores = elmo.log_probs([["the", "cat", "."], []])
    assert scores[0].shape == (2, 4) and scores[1].shape == (2, 1)
    assert all((score < 0).all() for score in scores)
    assert elmo.bundle.start is not None


def test_a_run_learns_something(undisturbed):
    looks = [entry for entry in log(undisturbed) if entry["what"] == "look"]
    assert looks[-1]["mean"] < 14  # eleven words and two boundaries; a model that knows nothing is at 14
    steps = [entry["loss"] for entry in log(undisturbed) if entry["what"] == "step"]
    assert np.mean(steps[-5:]) < steps[0]


def test_a_killed_run_goes_on_to_the_same_bits_and_repeats_no_more_than_it_may(undisturbed, tmp_path):
    for name in ("text.txt", "recipe.toml"):
        (tmp_path / name).write_bytes((undisturbed / name).read_bytes())
    chosen = random.Random(0)
    kills = 0
    for _ in range(4):
        process = subprocess.Popen(
            command(tmp_path), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        steps = chosen.randint(1, 7)
        path, before = tmp_path / "model" / "train.jsonl", 0
        before = len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0
        while process.poll() is None:
            if path.exists() and len(path.read_text(encoding="utf-8").splitlines()) >= before + steps:
                process.send_signal(signal.SIGKILL)
                kills += 1
                process.wait()
            time.sleep(0.002)
        if process.returncode == 0:
            break
    assert run(tmp_path).returncode == 0
    assert kills >= 2
    for file in ("model.safetensors",):
        ours, theirs = (load_file(folder / "model" / file) for folder in (tmp_path, undisturbed))
        assert ours.keys() == theirs.keys()
        assert all(ours[name].tobytes() == theirs[name].tobytes() for name in ours)
    numbers = [entry["number"] for entry in log(tmp_path) if entry["what"] == "step"]
    assert set(numbers) == set(range(1, max(numbers) + 1))
    repeats = [before + 1 - after for before, after in pairwise(numbers) if after <= before]
    assert all(repeated <= 5 for repeated in repeats)


def test_a_finished_run_says_so_and_changes_nothing(undisturbed):
    before = (undisturbed / "model" / "model.safetensors").read_bytes()
    again = run(undisturbed)
    assert again.returncode == 0 and "over already" in again.stdout
    assert (undisturbed / "model" / "model.safetensors").read_bytes() == before


def test_changed_settings_are_refused_by_name(undisturbed):
    again = run(undisturbed, "--seed", "7")
    assert again.returncode == 1 and "train.seed was 1 and is now 7" in again.stderr
    assert "Traceback" not in again.stderr


@pytest.mark.parametrize(
    "name, content, says",
    [
        ("text.txt", b"\n \n", "every line is blank"),
        ("text.txt", b"caf\xe9\n", "text.txt, line 1: byte 4 (0xe9) is not UTF-8"),
        ("recipe.toml", b"[train]\nrat = 3\n", "train.rat"),
        ("recipe.toml", b"[train\n", "is not TOML"),
        ("recipe.toml", b"[network]\nwords = 'letters'\n", "known are chars, table"),
    ],
)
def test_a_mistake_is_told_in_a_line(tmp_path, name, content, says):
    write_text(tmp_path)
    (tmp_path / name).write_bytes(content)
    done = run(tmp_path)
    assert done.returncode == 1 and says in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "model").exists()


def test_a_folder_that_is_something_else_is_left_alone(tmp_path):
    write_text(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "precious.txt").write_text("mine", encoding="utf-8")
    done = run(tmp_path)
    assert done.returncode == 1 and "exists already and is no training run" in done.stderr
    assert [file.name for file in (tmp_path / "model").iterdir()] == ["precious.txt"]


def test_a_second_run_on_the_same_folder_is_refused(tmp_path):
    write_text(tmp_path, lines=4000)
    first = subprocess.Popen(command(tmp_path), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not Path(tmp_path / "model" / "train.jsonl").exists():
            assert first.poll() is None
            time.sleep(0.05)
        second = run(tmp_path)
        assert second.returncode == 1 and "another run is training" in second.stderr
        assert first.poll() is None
    finally:
        first.kill()
        first.wait()


def test_a_run_that_is_broken_off_at_any_point_goes_on_to_the_same_bits(undisturbed, tmp_path, monkeypatch):
    for name in ("text.txt", "recipe.toml"):
        (tmp_path / name).write_bytes((undisturbed / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    chosen = random.Random(2)
    broken = 0
    for _ in range(20):
        events = train([Path("text.txt")], Path("model"), recipes.read("recipe.toml"))
        for _, _event in zip(range(chosen.randint(1, 12)), events, strict=False):
            pass
        events.close()  # nothing is saved on the way out, just as when the power fails
        broken += 1
    *_, last = train([Path("text.txt")], Path("model"), recipes.read("recipe.toml"))
    assert broken == 20 and last.progress.finished
    ours, theirs = (load_file(folder / "model" / "model.safetensors") for folder in (tmp_path, undisturbed))
    assert all(ours[name].tobytes() == theirs[name].tobytes() for name in theirs)

"""Damaged training folders: refused with what to do, or trained to the same model; never a traceback, never a hang."""

import os
import random
import shutil

import pytest

from bilmo.errors import BilmoError
from bilmo.training.events import Step
from bilmo.training.run import train
from small_runs import recipe, same_bits, weights, write_text

CORPUS = ("train.ids", "train.ends", "held_out.ids", "held_out.ends", "words.txt", "counts.npy", "facts.json")
FILES = ("training/checkpoint.safetensors", "training/run.json", *(f"training/corpus/{name}" for name in CORPUS))


def flipped(path, draw):
    data = bytearray(path.read_bytes())
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def flipped_near_the_end(path, draw):
    """Values of tensors come last, names and shapes first."""
    data = bytearray(path.read_bytes())
    data[-draw.randint(1, len(data) // 4)] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def cut(path, draw):
    path.write_bytes(path.read_bytes()[: draw.randrange(path.stat().st_size)])


def pipe(path, draw):
    path.unlink()
    os.mkfifo(path)


def folder(path, draw):
    path.unlink()
    path.mkdir()


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run that was stopped after a checkpoint and an evaluation, and the weights that it ends with."""
    made = tmp_path_factory.mktemp("stopped")
    text = write_text(made)
    events = train([text], made / "model", recipe(made))
    for event in events:
        if isinstance(event, Step) and event.number == 14:
            break
    events.close()
    list(train([text], made / "whole", recipe(made)))
    return made, weights(made / "whole")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", [flipped, flipped_near_the_end, cut, pipe, folder])
def test_a_damaged_file_of_a_run_is_refused_or_changes_nothing(stopped, tmp_path, name, damage):
    made, expected = stopped
    draw = random.Random(f"{name} {damage.__name__}")
    for number in range(3 if damage in (flipped, flipped_near_the_end, cut) else 1):
        case = shutil.copytree(made, tmp_path / str(number))
        damage(case / "model" / name, draw)
        try:
            *_, last = train([case / "text.txt"], case / "model", recipe(case))
        except BilmoError as error:
            assert any(advice in str(error) for advice in ("Delete this folder", "Remove it", "remove "))
            continue
        assert last.progress.finished and same_bits(weights(case / "model"), expected)


@pytest.mark.parametrize(
    "line",
    [b"", b"5\n", b"[]\n", b"{}\n", b'{"event": []}\n', b'{"event": "step"}\n', b"\xff\xfe\n", b"[" * 5000 + b"\n"],
)
def test_a_damaged_log_does_not_stop_a_run(stopped, tmp_path, line):
    made, expected = stopped
    case = shutil.copytree(made, tmp_path / "case")
    log = case / "model" / "train.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:4], line, *lines[5:], line]))
    list(train([case / "text.txt"], case / "model", recipe(case)))
    assert same_bits(weights(case / "model"), expected)

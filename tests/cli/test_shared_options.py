"""Options of every command: threads, quiet, verbose; and what they show."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
import torch

from cli.test_help import COMMANDS, TASKS, inner
from program import SignalAfter, program, started
from small_runs import write_text

ROOT = Path(__file__).parents[2]
TRAIN = ("train", "text.txt", "-o", "model", "--recipe", "recipe.toml", "--epochs", "0.3")
NOT_COMPUTING = {"models", "info", "plan"}
ONLY_CPU = {"convert", "export", "get"}
"""They compute only the settled start of sentences."""
LEAVES = {
    f"{name} {task}" if task else name: inner(command, task) if task else command
    for name, command in COMMANDS.items()
    for task in (TASKS if hasattr(command, "get_command") else ("",))
}


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_has_the_shared_options(name):
    options = {option for parameter in LEAVES[name].params for option in parameter.opts}
    assert {"--quiet", "-q", "--verbose", "-v"} <= options
    assert ("--threads" in options) == (name not in NOT_COMPUTING)
    assert ("--device" in options) == (name not in NOT_COMPUTING | ONLY_CPU)


@pytest.fixture
def folder(tmp_path):
    write_text(tmp_path)
    return tmp_path


def test_quiet_shows_only_the_result(folder):
    done = program(folder, *TRAIN, "--quiet")
    (line,) = done.out.splitlines()
    assert (done.code, done.err) == (0, "") and line.startswith("model: training is complete;")
    loud = program(folder, *TRAIN[:2], "-o", "other", *TRAIN[4:])
    assert "reading the text" in loud.err and "held-out perplexity" in loud.err and "vocabulary" in loud.out
    (folder / "strange.txt").write_text("alpha beta gamma delta\n" * 3, encoding="utf-8")
    done = program(folder, "evaluate", "model", "strange.txt", "-q")
    assert done.code == 0 and done.err.startswith("warning: 100% of the words are not in the vocabulary of the model")
    assert "perplexity" in done.out


def test_quiet_hides_notes(folder):
    assert program(folder, *TRAIN, "-q").code == 0
    told = program(folder, "convert", "model", "old", "--to", "allennlp")
    assert told.code == 0 and "dropped: the softmax" in told.err
    assert program(folder, "convert", "model", "older", "--to", "allennlp", "-q").err == ""


def test_errors_are_shown_even_if_quiet(folder):
    done = program(folder, "info", "nothing", "-q")
    assert done.code == 1 and done.err.startswith("bilmo: nothing: there is no such file or folder")


def test_verbose_shows_details_and_the_traceback_of_an_error(folder):
    done = program(folder, *TRAIN, "-v")
    assert done.code == 0 and "bilmo.training.run: model/training/checkpoint.safetensors: saved after step" in done.err
    done = program(folder, "info", "model", "--verbose")
    assert "bilmo.formats.open: model: bilmo folder, " in done.err
    assert "bilmo.formats.open" not in program(folder, "info", "model").err
    done = program(folder, "info", "nothing", "-v")
    assert done.code == 1 and "Traceback" in done.err and done.err.splitlines()[-1].startswith("bilmo: nothing: ")
    assert "Traceback" not in program(folder, "info", "nothing").err


def test_a_device_that_does_not_exist_is_refused_by_every_command(folder):
    assert program(folder, *TRAIN, "-q").code == 0
    rows = [f"{'good' if k % 2 else 'bad'}\tthe cat {'sat' if k % 2 else 'saw'} {k}" for k in range(24)]
    (folder / "data").write_text("\n".join(rows), encoding="utf-8")
    fit = ("fit", "classify", "model", "--train", "data", "-o", "task", "--epochs", "1", "--hidden", "4", "-q")
    assert program(folder, *fit, "--device", "cpu").code == 0
    for command in (
        ("embed", "model", "text.txt", "-o", "v.npy"),
        ("evaluate", "model", "text.txt"),
        ("similar", "model", "cat"),
        ("word-cache", "model", "text.txt", "-o", "words"),
        ("train", "text.txt", "-o", "new"),
        ("finetune", "model", "text.txt", "-o", "new"),
        ("fit", "classify", "model", "--train", "data", "-o", "new"),
        ("compare", "classify", "model", "--train", "data"),
        ("predict", "task", "data"),
        ("score", "task", "data"),
    ):
        done = program(folder, *command, "--device", "gpu")
        assert (done.code, done.out) == (1, "") and "device is 'gpu'; accepted: auto, cpu, cuda, mps" in done.err
    plain, moved = (program(folder, "predict", "task", "data", *device) for device in ((), ("--device", "auto")))
    assert plain.out == moved.out


def test_quiet_and_verbose_contradict_each_other(folder):
    done = program(folder, "models", "-q", "-v")
    assert (done.code, done.out) == (1, "") and "contradict" in done.err


@pytest.mark.parametrize("command", [("similar", "model", "cat"), ("evaluate", "model", "text.txt")])
def test_threads_are_set_in_every_command_that_computes(folder, command):
    before = torch.get_num_threads()
    try:
        assert program(folder, *TRAIN, "--threads", "1", "-q").code == 0
        assert torch.get_num_threads() == 1
        torch.set_num_threads(before)
        assert program(folder, *command, "--threads", "1").code == 0
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
    assert program(folder, *command, "--threads", "0").code == 2


CODES = {
    0: ("models",),
    1: ("info", "nothing"),
    2: ("info", "--unknown"),
    130: ("train", "text.txt", "-o", "model", "--recipe", "recipe.toml"),
}


@pytest.mark.parametrize("code", CODES)
def test_the_exit_codes_are_those_of_the_guide(folder, code):
    guide = (ROOT / "docs" / "guides" / "command-line.md").read_text(encoding="utf-8")
    assert [int(found) for found in re.findall(r"^\| (\d+) \| ", guide, re.MULTILINE)] == list(CODES)
    if code == 130:
        process = started(folder, *CODES[code], after=SignalAfter("bilmo.training.run", "_save", 1, signal.SIGINT))
        assert "bilmo: interrupted" in process.communicate()[1]
        assert process.returncode == code
    else:
        assert program(folder, *CODES[code]).code == code

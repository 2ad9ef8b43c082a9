"""Runs that are made longer: continued where that is exact, otherwise refused with what to do instead."""

import json

import pytest

from bilmo.training.events import Finished
from bilmo.training.run import train
from program import program
from small_runs import log, recipe, same_bits, threads, weights, write_text

COMMAND = ("train", "text.txt", "-o", "model", "--recipe", "recipe.toml")
CONSTANT = "warm_up = 0.0\ndecay = false\npatience = 0\n"


def folder_with(path, more=""):
    """A folder with a text and a recipe."""
    path.mkdir()
    write_text(path)
    with (path / "recipe.toml").open("a", encoding="utf-8") as file:
        file.write(more)
    return path


def steps(folder):
    """The losses of all steps, by number."""
    return {entry["number"]: entry["loss"] for entry in log(folder / "model", "step")}


@pytest.mark.parametrize("context", ["sentences", "stream"])
def test_a_run_at_a_constant_rate_is_continued_to_the_same_bits(tmp_path, context):
    more = f'{CONSTANT}context = "{context}"\naverage = 0.9\nwindow = 5\n'
    short, whole = (folder_with(tmp_path / name, more) for name in ("short", "whole"))
    with threads(1):
        assert program(whole, *COMMAND, "--epochs", "3").code == 0
        assert program(short, *COMMAND, "--epochs", "1.3").code == 0
        before = len(log(short / "model", "evaluation"))
        done = program(short, *COMMAND, "--epochs", "3")
    assert done.code == 0, done.err
    assert "it continues to 3 epochs" in done.err and "training is complete" in done.out
    assert steps(short) == steps(whole)
    evaluations = [(entry["number"], entry["mean"]) for entry in log(short / "model", "evaluation")]
    extra = evaluations.pop(before - 1)  # at the end of the short run
    assert evaluations == [(entry["number"], entry["mean"]) for entry in log(whole / "model", "evaluation")]
    if extra[1] > min(mean for _, mean in evaluations):
        assert same_bits(weights(short / "model"), weights(whole / "model"))
    assert "epochs = 3" in (short / "model" / "README.md").read_text(encoding="utf-8")


def test_a_continued_run_can_be_shortened_only_in_words(tmp_path):
    folder = folder_with(tmp_path / "run", CONSTANT)
    assert program(folder, *COMMAND, "--epochs", "1").code == 0
    before = (folder / "model" / "train.jsonl").read_bytes()
    for epochs in ("1", "0.5"):
        done = program(folder, *COMMAND, "--epochs", epochs)
        assert (done.code, "this run is already complete" in done.out) == (0, True)
    assert (folder / "model" / "train.jsonl").read_bytes() == before


@pytest.mark.parametrize("more", ["", "warm_up = 0.0\ndecay = false\n"], ids=["decay", "patience"])
@pytest.mark.parametrize("longer", [("--epochs", "3"), ("--minutes", "3")], ids=["epochs", "minutes"])
def test_a_run_that_depends_on_its_length_is_refused_and_finetune_is_named(tmp_path, more, longer):
    folder = folder_with(tmp_path / "run", more)
    assert program(folder, *COMMAND, "--epochs", "1").code == 0
    before = {path: path.read_bytes() for path in (folder / "model").rglob("*") if path.is_file()}
    done = program(folder, *COMMAND, *longer)
    assert done.code == 1
    assert "was started with 1.0 epochs and cannot become a run of 3.0" in done.err
    assert "bilmo finetune model TEXT -o NEW_FOLDER" in done.err
    assert {path: path.read_bytes() for path in (folder / "model").rglob("*") if path.is_file()} == before
    done = program(folder, *COMMAND, *longer, "--width", "9")  # differs in more than its length
    assert "network.width was 8 and is now 9" in done.err and "finetune" not in done.err


def test_a_new_softmax_that_is_trained_first_depends_on_the_length(tmp_path):
    """Only the softmax is trained during a share of the run."""
    folder = folder_with(tmp_path / "run", CONSTANT)
    assert program(folder, *COMMAND, "--epochs", "0.2").code == 0
    assert program(folder, "convert", "model", "old", "--to", "allennlp").code == 0
    command = ("finetune", "old", "text.txt", "-o", "new", "--recipe", "recipe.toml", "--epochs")
    assert program(folder, *command, "0.3").code == 0
    done = program(folder, *command, "0.6")
    assert done.code == 1 and "cannot become a run of 0.6 epochs" in done.err
    command = ("finetune", "model", "text.txt", "-o", "newer", "--recipe", "recipe.toml", "--epochs")
    assert program(folder, *command, "0.3").code == 0
    assert "it continues to 0.6 epochs" in program(folder, *command, "0.6").err


def test_minutes_are_continued_too(tmp_path):
    folder = folder_with(tmp_path / "run", CONSTANT)
    texts, model = [folder / "text.txt"], folder / "model"
    end = list(train(texts, model, recipe(folder, minutes=0.001)))[-1]
    assert isinstance(end, Finished) and end.progress.finished
    longer = list(train(texts, model, recipe(folder, minutes=0.005)))
    assert longer[-1].progress.steps > end.progress.steps or longer[-1].progress.seconds >= 0.3
    described = json.loads((model / "training" / "run.json").read_text(encoding="utf-8"))
    assert not {"minutes", "epochs"} & described["settings"]["train"].keys()

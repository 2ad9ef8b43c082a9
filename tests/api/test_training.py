"""`bilmo.train` and `bilmo.finetune`: the same runs as those of the commands."""

import logging
from dataclasses import fields
from typing import get_type_hints

import numpy as np
import pytest

import bilmo
from bilmo.api.settings import RecipeSettings
from bilmo.errors import ConfigError, OutputError, TextError
from bilmo.training.events import Evaluation, Finished, Reading, Ready, Step
from bilmo.training.recipe import SECTIONS
from program import program
from small_runs import same_bits, threads, weights, write_text


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    write_text(tmp_path)
    monkeypatch.chdir(tmp_path)
    with threads(1):
        yield tmp_path


def test_train_gives_the_model_of_the_command_and_loads_it(place, caplog, capfd):
    caplog.set_level(logging.INFO, "bilmo")
    elmo = bilmo.train("text.txt", "model", recipe="recipe.toml", epochs=1, rate=0.02, progress=True)
    assert capfd.readouterr() == ("", "")  # there is no terminal, so there is no bar
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == "model: reading the text" and said[1].startswith("model: new run: ")
    assert sum("held-out perplexity" in line for line in said) >= 2 and "training is complete" in said[-1]
    assert {record.name for record in caplog.records} == {"bilmo"}
    done = program(
        place, "train", "text.txt", "-o", "other", "--recipe", "recipe.toml", "--epochs", "1", "--rate", "0.02"
    )
    assert done.code == 0, done.err
    assert same_bits(weights(place / "model"), weights(place / "other"))
    loaded = bilmo.load("other").embed([["the", "cat"]])[0]
    assert np.array_equal(elmo.embed([["the", "cat"]])[0], loaded)


def test_events_advance_the_run_and_the_same_call_resumes_it(place):
    events = bilmo.train(place / "text.txt", place / "model", recipe="recipe.toml", events=True)
    seen = [event for event, _ in zip(events, range(12), strict=False)]
    assert [type(event) for event in seen[:2]] == [Reading, Ready]
    assert {type(event) for event in seen[2:]} <= {Step, Evaluation}
    del events  # the folder is released
    found = list(bilmo.train([place / "text.txt"], "model", recipe="recipe.toml", events=True))
    assert isinstance(found[0], Ready) and found[0].resumed and isinstance(found[-1], Finished)
    bilmo.train("text.txt", "at-once", recipe="recipe.toml")
    assert same_bits(weights(place / "model"), weights(place / "at-once"))


def test_a_complete_run_is_not_repeated(place):
    first = bilmo.train("text.txt", "model", recipe="recipe.toml", epochs=0.5)
    before = (place / "model" / "train.jsonl").read_bytes()
    again = bilmo.train("text.txt", "model", recipe="recipe.toml", epochs=0.5)
    assert (place / "model" / "train.jsonl").read_bytes() == before
    assert np.array_equal(first.embed([["cat"]])[0], again.embed([["cat"]])[0])


def test_finetune_gives_the_model_of_the_command(place):
    bilmo.train("text.txt", "model", recipe="recipe.toml", epochs=0.5, vocab_size=8)
    elmo = bilmo.finetune("model", ["text.txt"], "finer", recipe="recipe.toml", add_words=2, epochs=0.5)
    options = ("--recipe", "recipe.toml", "--add-words", "2", "--epochs", "0.5")
    done = program(place, "finetune", "model", "text.txt", "-o", "other", *options)
    assert done.code == 0, done.err
    assert same_bits(weights(place / "finer"), weights(place / "other"))
    assert elmo.bundle.vocab is not None and len(elmo.bundle.vocab) == 10
    with pytest.raises(OutputError, match="is the folder of the original model"):
        bilmo.finetune("model", "text.txt", "model")


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({"minuts": 3}, ConfigError, "there is no setting 'minuts'; accepted: lang, dictionary, held_out, max_words"),
        ({"width": 0}, ConfigError, "width is 0; it must be 1 or more"),
        ({"width": "wide"}, ConfigError, "network.width"),
        ({"minutes": 1, "epochs": 1}, ConfigError, "minutes and epochs are both given"),
        ({"recipe": "huge"}, ConfigError, "there is no recipe 'huge'; accepted: tiny"),
        ({"texts": "nowhere.txt"}, TextError, "nowhere.txt: there is no such file"),
        ({"texts": None}, TextError, r"texts must be the path of a text file or folder.*found None \(NoneType\)"),
        ({"texts": []}, TextError, "texts must be the path of a text file or folder.*the list is empty"),
    ],
)
def test_a_mistake_is_explained_and_leaves_nothing(place, wrong, error, said):
    given = {"texts": "text.txt", "output": "model", "recipe": "recipe.toml"} | wrong
    with pytest.raises(error, match=said):
        bilmo.train(**given)
    assert not (place / "model").exists()


def test_the_keyword_arguments_are_the_settings_of_the_recipe():
    named = {field.name: get_type_hints(kind)[field.name] for kind in SECTIONS.values() for field in fields(kind)}
    assert get_type_hints(RecipeSettings) == named

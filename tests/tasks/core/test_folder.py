"""A saved task predicts the same after loading, wherever its biLM is; missing and different files are reported."""

from __future__ import annotations

import json
import os
import shutil
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import bilmo
from bilmo.errors import BilmoError, ConfigError, DamagedFile, NotAModel, OutputError, VocabError, WeightsError
from bilmo.store import model_folder as folders
from bilmo.store.hashed_folder import NewFolder
from bilmo.store.validate import sha256_of
from bilmo.store.vectors_file import Vectors
from bilmo.tasks import folder
from bilmo.tasks.classify.classifier import Classifier
from bilmo.tasks.core.picture import layer_weights_svg
from bilmo.tasks.core.task_folder import publish
from bilmo.tasks.network.input import LearnedMix
from bilmo.tasks.tag.tagger import Tagger

from task_data import made, sentences, texts

SMALL = {"hidden": 6, "epochs": 2, "rate": 0.02}
GIVEN = Vectors(["red", "cat", "the", "漢字"], np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32))


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (Classifier, {}),
        (Classifier, {"elmo_at": "both", "vectors": GIVEN, "chars": 3, "head": "bilstm", "batch_norm": True}),
        (Classifier, {"elmo_at": "none", "vectors": "scratch"}),
        (Classifier, {"tune": True, "mix": "0,1"}),
        (Tagger, {"vectors": GIVEN, "elmo_at": "both"}),
        (Tagger, {"head": "linear", "mix": (1,)}),
    ],
)
def test_a_loaded_task_predicts_as_before(model, tmp_path, kind, settings):
    some, answers = texts(30) if kind is Classifier else sentences(30)
    task = kind(bilmo.load(model), **SMALL, **settings).fit(some, answers)
    folder.save(task, tmp_path / "task", model=str(model))
    loaded: Any = folder.load(tmp_path / "task")
    assert type(loaded) is kind and loaded.labels_ == task.labels_
    new = (texts(10, seed=7) if kind is Classifier else sentences(10, seed=7))[0]
    for a, b in zip(task.predict_proba(new), loaded.predict_proba(new), strict=True):
        assert np.allclose(a, b, atol=1e-5)
    assert loaded.mixes_ == task.mixes_
    assert (tmp_path / "task" / "layers.svg").exists() == bool(task.mixes_)
    if settings.get("tune") or settings.get("elmo_at") == "none":  # these need no other folder
        shutil.rmtree(model)
        assert list(folder.load(tmp_path / "task").predict(new)) == list(task.predict(new))


@pytest.mark.parametrize("words", [GIVEN, Vectors([*GIVEN.words, "<unk>"], np.eye(5, dtype=np.float32))])
def test_a_loaded_task_can_be_fitted_again_with_the_same_vectors(model, tmp_path, words):
    task = Classifier(bilmo.load(model), vectors=words, **SMALL).fit(*texts(30))
    folder.save(task, tmp_path / "task", model=str(model))
    again = folder.load(tmp_path / "task").__sklearn_clone__().fit(*texts(30))
    assert again.words_.lower == task.words_.lower and len(again.predict(["the red cat"])) == 1
    for word in (*words.words, "a word that is not in the vocabulary"):
        now, before = (t.words_.values[t.words_.vocab.ids([word])[0]] for t in (again, task))
        assert np.array_equal(now, before)


@pytest.fixture
def saved(model, tmp_path):
    task = Classifier(bilmo.load(model), vectors=GIVEN, **SMALL).fit(*texts(30))
    folder.save(task, tmp_path / "task", model=str(model))
    return tmp_path / "task"


def test_a_missing_model_is_reported_and_may_have_moved(saved, model, tmp_path):
    model.rename(tmp_path / "moved")
    with pytest.raises(NotAModel, match=r"needs the biLM .*model .*SHA-256.*--model"):
        folder.load(saved)
    assert folder.load(saved, elmo=tmp_path / "moved").predict(["a cat"])
    assert folder.load(saved, elmo=bilmo.load(tmp_path / "moved")).predict(["a cat"])


def test_a_different_model_is_refused(saved, model, another):
    with pytest.raises(WeightsError, match="this is a different one"):
        folder.load(saved, elmo=another)
    shutil.rmtree(model)
    folders.write(made(2), model)
    with pytest.raises(WeightsError, match="this is a different one"):
        folder.load(saved)


def test_a_task_saved_without_the_path_of_its_model_asks_for_it(model, tmp_path):
    task = Classifier(bilmo.load(model), **SMALL).fit(*texts(30))
    folder.save(task, tmp_path / "task")
    with pytest.raises(NotAModel, match="give its path"):
        folder.load(tmp_path / "task")


def test_the_same_model_in_another_layout_is_accepted(saved, model, tmp_path):
    from bilmo.formats import open as layouts

    layouts.write(bilmo.load(model).bundle, tmp_path / "old", "allennlp")
    assert folder.load(saved, elmo=tmp_path / "old").predict(["a cat"]) == folder.load(saved).predict(["a cat"])


def change(path, **values):
    """Other values in config.json, whose hash is made to fit."""
    data = json.loads(path.read_text("utf-8")) | values
    hashes = {name: value for name, value in data.pop("sha256").items() if name != path.name}
    NewFolder(path.parent, hashes).write_json(path.name, data)


def rewrite(path, text):
    """Another list of words, whose hash is made to fit."""
    path.write_text(text, encoding="utf-8")
    reseal(path)


def reseal(path):
    hashes = json.loads((path.parent / "config.json").read_text("utf-8"))["sha256"]
    change(path.parent / "config.json", sha256=hashes | {path.name: sha256_of(path)})


DAMAGES = {
    "no config": (lambda f: (f / "config.json").unlink(), NotAModel, "is not the folder of a saved task"),
    "no json": (lambda f: (f / "config.json").write_text('{"bilmo_task"'), DamagedFile, "is not JSON"),
    "newer": (lambda f: change(f / "config.json", format=9), ConfigError, "newer version"),
    "other task": (lambda f: change(f / "config.json", bilmo_task="sing"), ConfigError, "has only classify, tag"),
    "misspelt": (lambda f: change(f / "config.json", extra=1), ConfigError, "extra"),
    "no labels": (lambda f: change(f / "config.json", prepared={}), ConfigError, "labels"),
    "more labels": (
        lambda f: change(f / "config.json", prepared={"labels": ["a", "b", "c"], "lang": "en"}),
        WeightsError,
        "does not fit",
    ),
    "one label": (
        lambda f: change(f / "config.json", prepared={"labels": ["a"], "lang": "en"}),
        ConfigError,
        "there are 1 labels; there must be from 2",
    ),
    "a label twice": (
        lambda f: change(f / "config.json", prepared={"labels": ["a", "a"], "lang": "en"}),
        ConfigError,
        "a label occurs twice",
    ),
    "a giant": (
        lambda f: change(
            f / "config.json", settings=json.loads((f / "config.json").read_text())["settings"] | {"hidden": 10**8}
        ),
        ConfigError,
        "GB of memory, but this machine has",
    ),
    "a giant beyond counting": (
        lambda f: change(
            f / "config.json", settings=json.loads((f / "config.json").read_text())["settings"] | {"hidden": 10**12}
        ),
        ConfigError,
        "hidden is 1000000000000; it must be from 1 to 100000000",
    ),
    "a pipe": (lambda f: [(f / "words.txt").unlink(), os.mkfifo(f / "words.txt")], DamagedFile, "is not a file"),
    **{
        f"labels {labels}": (
            lambda f, labels=labels: change(f / "config.json", prepared={"labels": labels, "lang": "en"}),
            ConfigError,
            "labels",
        )
        for labels in ([1, "a"], [1.0, 2.0], [None, "a"], [["a"], ["b"]], [True, 2], "ab", {"a": 1}, [], 3)
    },
    "no weights": (lambda f: (f / "task.safetensors").unlink(), DamagedFile, "is missing. Fit the task again"),
    "a bit": (lambda f: flip(f / "task.safetensors"), DamagedFile, "is not the file that was saved"),
    "vectors": (lambda f: flip(f / "vectors.safetensors"), DamagedFile, "is not the file that was saved"),
    "words": (lambda f: rewrite(f / "words.txt", "<S>\n</S>\n<UNK>\n"), VocabError, "has 3 entries"),
    "a bit of a word": (lambda f: flip(f / "words.txt"), DamagedFile, "words.txt: is not the file that was saved"),
    "no words": (lambda f: (f / "words.txt").unlink(), DamagedFile, "words.txt: is missing"),
}


def flip(path):
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_folders_are_refused(saved, damage):
    spoil, kind, message = DAMAGES[damage]
    spoil(saved)
    with pytest.raises(kind) as error:
        folder.load(saved)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "spoil, says",
    [
        (lambda value: value * float("nan"), "values are not finite"),
        (lambda value: value.double(), "does not fit config.json: head.last.bias"),
        (lambda value: value.long(), "does not fit config.json: head.last.bias"),
        (lambda value: torch.complex(value, value), "does not fit config.json: head.last.bias"),
        (lambda value: value[:1], "does not fit config.json: head.last.bias"),
    ],
    ids=["nan", "double", "integers", "complex", "shape"],
)
def test_weights_that_are_not_finite_float32_numbers_are_refused(saved, spoil, says):
    path = saved / "task.safetensors"
    tensors = load_file(path)
    save_file(tensors | {"head.last.bias": spoil(tensors["head.last.bias"] + 1)}, path)
    reseal(path)
    with pytest.raises(WeightsError, match=says):
        folder.load(saved)


def test_a_flipped_bit_in_the_config_is_refused_or_changes_nothing(saved):
    path = saved / "config.json"
    good = path.read_bytes()
    before = folder.load(saved)
    for place in range(3, len(good), 41):
        bad = bytearray(good)
        bad[place] ^= 1 << place % 8
        path.write_bytes(bad)
        try:
            found = folder.load(saved)
        except BilmoError:
            continue
        assert (found.settings_, found.prepared_) == (before.settings_, before.prepared_)


@pytest.mark.parametrize("command", [("predict", "-"), ("score", "a.tsv")])
def test_a_folder_of_format_1_is_refused_with_what_to_do(saved, run, command):
    """Its biLM was identified by a hash over names that are no longer used."""
    config = json.loads((saved / "config.json").read_text("utf-8"))
    old = {name: config[name] for name in ("bilmo_task", "bilm", "words", "sha256")}
    old |= {"format": 1, "settings": {"at": "input", "head": "default"}, "form": "tab"}
    old["facts"] = {"labels": ["animal", "colour"], "lang": "spaces"}
    (saved / "config.json").write_text(json.dumps(old), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"has format 1; this version of bilmo reads format 2.*Fit the task again"):
        folder.load(saved)
    refused = run(command[0], saved, *command[1:])
    assert refused.code == 1 and "Fit the task again" in refused.err and "Traceback" not in refused.err


def test_a_folder_that_exists_is_left_alone(model, tmp_path):
    task = Classifier(bilmo.load(model), **SMALL).fit(*texts(30))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    with pytest.raises(OutputError, match="already exists"):
        folder.save(task, tmp_path / "mine")
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["file"]


def test_word_vectors_are_written_once(model, tmp_path):
    task = Classifier(bilmo.load(model), vectors=GIVEN, **SMALL).fit(*texts(30))
    (tmp_path / "run").mkdir()
    written = publish(task, tmp_path / "run", model=str(model), written={})
    before = (tmp_path / "run" / "vectors.safetensors").stat().st_ino
    assert publish(task, tmp_path / "run", model=str(model), written=written) == written
    assert (tmp_path / "run" / "vectors.safetensors").stat().st_ino == before
    assert folder.load(tmp_path / "run").predict(["a cat"]) == task.predict(["a cat"])


def test_files_have_normal_permissions(model, tmp_path):
    task = Classifier(bilmo.load(model), vectors=GIVEN, tune=True, **SMALL).fit(*texts(30))
    before = os.umask(0o027)
    try:
        folder.save(task, tmp_path / "task")
    finally:
        os.umask(before)
    modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "task").rglob("*") if file.is_file()}
    assert {"task.safetensors", "vectors.safetensors", "model.safetensors"} < modes.keys()
    assert set(modes.values()) == {0o640}


def test_a_tuned_model_is_not_saved_twice(model, tmp_path):
    task = Classifier(bilmo.load(model), tune=True, **SMALL).fit(*texts(30))
    network = task.network_
    tuned = {f"input.tuned.{name}" for name in network.input.tuned.state_dict()}
    assert tuned and network.own_state().keys() == network.learned_state().keys() - tuned
    assert set(map(id, network.bilm_parameters())) == set(map(id, network.input.tuned.parameters()))
    assert len(network.own_parameters()) + len(network.bilm_parameters()) == len(list(network.parameters()))


def test_the_picture_has_one_bar_per_layer():
    picture = ET.fromstring(
        layer_weights_svg([LearnedMix("input", (0.25, 0.75), 1.5), LearnedMix("output", (0.5, 0.5), 1.0)])
    )
    bars = [float(bar.get("width")) for bar in picture.iter("{http://www.w3.org/2000/svg}rect")]
    assert bars == [75.0, 225.0, 150.0, 150.0]
    assert "scale 1.500" in "".join(picture.itertext())

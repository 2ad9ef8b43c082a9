"""`bilmo.embed_files` and `bilmo.word_cache`, compared with the commands."""

from __future__ import annotations

import json
import logging
import zipfile

import h5py
import numpy as np
import pytest
from safetensors.numpy import load_file

import bilmo
from bilmo.embed import job
from bilmo.embed.job import Finished, Started, Step
from bilmo.errors import ConfigError, OutputError, TextError, WeightsError
from program import program

from old_models import write_hdf5
from terminal import shown

TEXT = "Don't go.\n\nThe cat sat. It was n't far!\n你好，世界。\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_hdf5(tmp_path / "model")
    (tmp_path / "my text.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path


def test_the_file_is_that_of_the_command(here):
    found = bilmo.embed_files("model", "my text.txt", "python.npz", dtype="float16", start="zero")
    done = program(here, "embed", "model", "my text.txt", "-o", "shell.npz", "--dtype", "float16", "--start", "zero")
    assert done.out == f"shell.npz: {found.sentences} sentences, {found.tokens} tokens, lang: {found.lang}\n"
    with zipfile.ZipFile("python.npz") as python, zipfile.ZipFile("shell.npz") as shell:
        assert python.namelist() == shell.namelist()
        assert all(python.read(name) == shell.read(name) for name in python.namelist())
        assert json.loads(python.read("about.json"))["model"] == "model"


@pytest.mark.parametrize("name, mix", [("v.h5", "all"), ("v.npy", "mean")])
def test_the_format_chooses_the_layers_and_a_loaded_model_keeps_its_settings(here, name, mix):
    elmo = bilmo.load("model", lang="spaces")
    bilmo.embed_files(elmo, ["my text.txt"], name)
    lines = [line.split() for line in TEXT.splitlines()]
    expected = elmo.embed(lines, mix=mix)
    if mix == "mean":
        assert np.allclose(np.load(name), np.concatenate(expected), atol=1e-6)
    else:
        with h5py.File(name) as file:
            assert all(np.allclose(file[str(k)], vectors, atol=1e-6) for k, vectors in enumerate(expected))
    with pytest.raises(ConfigError, match="lang, device: a loaded model keeps its own settings"):
        bilmo.embed_files(elmo, "my text.txt", "other.npy", lang="en", device="cpu")


def test_the_run_advances_as_events_are_read_and_is_resumed(here, monkeypatch, caplog):
    monkeypatch.setattr(job, "PART_TOKENS", 8)
    events = bilmo.embed_files("model", "my text.txt", "v.jsonl", events=True)
    first, second = next(events), next(events)
    assert isinstance(first, Started) and first.sentences == 4 and isinstance(second, Step)
    next(events)
    del events  # the run stops where nobody reads on
    assert not (here / "v.jsonl").exists()
    with caplog.at_level(logging.INFO, logger="bilmo"):
        done = bilmo.embed_files("model", "my text.txt", "v.jsonl")
    assert isinstance(done, Finished) and "done_parts=1" in caplog.text
    rows = [json.loads(line) for line in (here / "v.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["tokens"] for row in rows] == [bilmo.load("model").embed(line).tokens for line in TEXT.splitlines()]


def test_a_field_of_json_lines(here):
    (here / "x.jsonl").write_text('{"a": "The cat."}\n{"a": ["The", "dog"]}\n')
    assert bilmo.embed_files("model", here / "x.jsonl", "v.npy", field="a", pool="mean").sentences == 2
    assert np.load("v.npy").shape == (2, 8)


@pytest.mark.parametrize(
    ("arguments", "settings", "error", "says"),
    [
        (("no such text",), {}, TextError, "no such text: there is no such file"),
        (("my text.txt", "v.txt"), {}, OutputError, r"v\.txt"),
        (("text.npy", "text.npy"), {}, OutputError, "is the input text.npy"),
        (("my text.txt", "model/weights.hdf5"), {}, OutputError, "which would be overwritten"),
        (("my text.txt",), {"mix": "tpo"}, ConfigError, "mix is 'tpo'; accepted: all, mean, top, concat"),
        (("my text.txt",), {"pool": "sum"}, ConfigError, "pool is 'sum'"),
        (("my text.txt",), {"batch_tokens": 0}, ConfigError, "batch_tokens is 0"),
        (("my text.txt", "old.npy"), {}, OutputError, "already exists"),
        ((None,), {}, TextError, "texts must be the path of a text file or folder"),
    ],
)
def test_a_mistake_is_explained_and_leaves_nothing(here, arguments, settings, error, says):
    for name in ("old.npy", "text.npy"):
        (here / name).write_bytes(b"old")
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    texts, output = (*arguments, "v.npy")[:2]
    with pytest.raises(error, match=says):
        bilmo.embed_files("model", texts, output, **settings)
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before


def test_overwrite_replaces_a_file(here):
    (here / "v.npy").write_bytes(b"old")
    bilmo.embed_files("model", "my text.txt", "v.npy", overwrite=True)
    assert np.load("v.npy").ndim == 2


@pytest.mark.parametrize("progress", [True, False])
def test_there_is_a_bar_if_asked_for(here, progress):
    code = f"import bilmo; bilmo.embed_files('model', 'my text.txt', 'v.npy', progress={progress})"
    seen = shown(here, "-c", code)
    assert ("100 %" in seen and "words/s" in seen) if progress else seen == ""


def test_a_word_cache_is_that_of_the_command_and_changes_no_vector(here):
    (here / "words.txt").write_text("The cat\nsat cat\n")
    assert bilmo.word_cache("model", "words.txt", "python.safetensors") == 5
    done = program(here, "word-cache", "model", "words.txt", "-o", "shell.safetensors")
    assert done.out == "shell.safetensors: 5 words\n"
    a, b = load_file("python.safetensors"), load_file("shell.safetensors")
    assert a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)
    bilmo.embed_files("model", "my text.txt", "plain.npy")
    bilmo.embed_files("model", "my text.txt", "cached.npy", word_cache="python.safetensors")
    assert np.allclose(np.load("plain.npy"), np.load("cached.npy"), atol=1e-6)
    with pytest.raises(WeightsError, match="was made with precision float32"):
        bilmo.embed_files("model", "my text.txt", "v.npy", word_cache="python.safetensors", precision="int8")
    (here / "blank.txt").write_text("\n")
    with pytest.raises(TextError, match=r"blank\.txt: no words; every line is blank"):
        bilmo.word_cache("model", "blank.txt", "w.safetensors")

"""Installed models by name, and models in float16."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import bilmo
from bilmo.errors import NotAModel
from bilmo.formats import open as layouts
from bilmo.store import installed
from bilmo.store import model_folder as folder
from bilmo.store.card import card_of
from program import program
from small_runs import weights

from old_models import write_hdf5

TRAINED = (
    "## Training\n\n| what | value |\n|---|---|\n| trained on | 12 words |\n| perplexity on unseen text | b 7.50 |\n"
)


@pytest.fixture
def bundle(tmp_path):
    write_hdf5(tmp_path / "old-model")
    return layouts.read(tmp_path / "old-model")


@pytest.fixture
def box(bundle, tmp_path, monkeypatch):
    """One model, called `xx`."""
    made = tmp_path / "box"
    made.mkdir()
    monkeypatch.setattr(installed, "BOX", made)
    folder.write(replace(bundle, card=card_of(bundle, TRAINED)), made / "xx")
    return made


def test_installed_models_are_listed_with_size_text_and_perplexity(box, tmp_path):
    done = program(tmp_path, "models")
    assert done.code == 0
    head, row = done.out.splitlines()
    assert head.split() == ["name", "size", "trained", "on", "perplexity", "folder"]
    assert row.split()[0] == "xx" and "12 words" in row and "7.50" in row and str(box / "xx") in row


def test_a_model_is_loaded_by_its_name(box, tmp_path):
    done = program(tmp_path, "embed", "xx", "The cat sat .", "-o", "v.npz")
    assert done.code == 0, done.err
    named, placed = bilmo.load("xx"), bilmo.load(box / "xx")
    a, b = (elmo.embed([["The", "cat"]])[0] for elmo in (named, placed))
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_a_folder_of_the_same_name_takes_precedence(box, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "xx").mkdir()
    with pytest.raises(NotAModel, match="xx: is not a model; it contains nothing"):
        bilmo.load("xx")


def test_an_unknown_model_name_is_reported_with_the_installed_ones(box):
    with pytest.raises(NotAModel, match="yy: there is no such file or folder; installed models: xx"):
        bilmo.load("yy")
    with pytest.raises(NotAModel):
        bilmo.load("../box/xx/../nothing")


def test_float16_halves_the_size_and_gives_nearly_the_same_vectors(box, tmp_path):
    assert program(tmp_path, "convert", "xx", "whole").code == 0
    assert program(tmp_path, "convert", "xx", "half", "--dtype", "float16").code == 0
    assert {value.dtype.itemsize for value in weights(tmp_path / "whole").values()} == {4}
    assert {value.dtype.itemsize for value in weights(tmp_path / "half").values()} == {2}
    vectors = [bilmo.load(tmp_path / name).embed([["The", "cat", "sat"]])[0] for name in ("whole", "half")]
    assert 0 < np.abs(vectors[0] - vectors[1]).max() < 5e-3 * np.abs(vectors[0]).max()


def test_weights_too_large_for_float16_are_refused_and_nothing_is_written(bundle, tmp_path):
    name = next(iter(bundle.weights))
    large = replace(bundle, weights=bundle.weights | {name: torch.full_like(bundle.weights[name], 1e6)})
    folder.write(large, tmp_path / "large")
    done = program(tmp_path, "convert", "large", "half", "--dtype", "float16")
    assert done.code == 1 and f"values of {name} are too large for float16" in done.err
    assert not (tmp_path / "half").exists()


def test_the_old_layout_cannot_hold_float16(box, tmp_path):
    done = program(tmp_path, "convert", "xx", "old", "--to", "allennlp", "--dtype", "float16")
    assert done.code == 1 and "works only with bilmo's own folder" in done.err
    assert not (tmp_path / "old").exists()

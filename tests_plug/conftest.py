"""Fixtures for the tests of the bridges: a tiny model in both layouts, and the real libraries without a network."""

import os
from pathlib import Path

import pytest

# Before any library is imported: no library may wait for a network, and waiting threads sleep.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.update({"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"})
os.environ["KERAS_BACKEND"] = "torch"

from bilmo.formats import open as layouts
from bilmo.store import model_folder

from task_data import made


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test touches the user's own files."""
    monkeypatch.setenv("BILMO_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("BILMO_MODELS", str(tmp_path_factory.mktemp("models")))
    monkeypatch.setenv("KERAS_HOME", str(tmp_path_factory.mktemp("keras")))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The folder of a tiny model."""
    model_folder.write(made(0), tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def old_model(tmp_path: Path) -> Path:
    """The same model as options.json and weights.hdf5."""
    layouts.write(made(0), tmp_path / "old-model", "allennlp")
    return tmp_path / "old-model"

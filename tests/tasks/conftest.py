"""Fixtures of all tests of tasks: tiny models and a cache folder of their own."""

from __future__ import annotations

import pytest

import bilmo
from bilmo.store import model_folder as folder

from task_data import made


@pytest.fixture(scope="session")
def tiny() -> bilmo.Embedder:
    return bilmo.Embedder(made(0))


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """No test touches the user's own files."""
    monkeypatch.setenv("BILMO_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def model(tmp_path):
    folder.write(made(0), tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def another(tmp_path):
    folder.write(made(1), tmp_path / "another")
    return tmp_path / "another"

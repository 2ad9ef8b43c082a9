"""What every test of tasks takes for granted: a tiny model, a cache of its own, the program."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

import bilmo
from bilmo.cli.app import main
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


@dataclass(frozen=True)
class Result:
    """How a run ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch, capsys) -> Callable[..., Result]:
    """The program in this process, with its arguments and what is piped into it."""

    def run(*arguments: object, stdin: str = "") -> Result:
        monkeypatch.setattr(sys, "argv", ["bilmo", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as stop:
            main()
        return Result(stop.value.code or 0, *capsys.readouterr())

    return run

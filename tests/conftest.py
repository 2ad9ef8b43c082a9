"""Settings and fixtures that all tests share."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen

import pytest
from hypothesis import HealthCheck, settings

from program import Result, program, started

# Waiting threads of torch sleep instead of keeping a core busy: the tests run side by side on few cores, with models so
# small that most of the time would be spent waiting. This must be set before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# A slow example on a busy machine is not a failure.
settings.register_profile(
    "busy", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("busy")

from bilmo.store import model_folder  # noqa: E402

from task_data import made  # noqa: E402


@pytest.fixture
def run() -> Callable[..., Result]:
    """Run the program in this process and in the current folder."""

    def run(*arguments: object, stdin: str | bytes = b"") -> Result:
        return program(Path.cwd(), *arguments, stdin=stdin)

    return run


@pytest.fixture
def start() -> Iterator[Callable[..., "Popen[str]"]]:
    """Start the program in a process of its own, which ends with the test."""
    with ExitStack() as stack:

        def start(*arguments: object) -> "Popen[str]":
            process = stack.enter_context(started(Path.cwd(), *arguments))
            stack.callback(process.kill)
            return process

        yield start


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test touches the user's own files."""
    monkeypatch.setenv("BILMO_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("BILMO_MODELS", str(tmp_path_factory.mktemp("models")))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The folder of a tiny model."""
    model_folder.write(made(0), tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def another(tmp_path: Path) -> Path:
    """The folder of a model like `model` with other weights."""
    model_folder.write(made(1), tmp_path / "another")
    return tmp_path / "another"

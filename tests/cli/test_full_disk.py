"""Commands on a disk that is full: a clear error, nothing half-written, and what was computed is kept."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bilmo.embed import job
from bilmo.embed.loaded import settled
from bilmo.formats import open as layouts
from program import program

from old_models import write_hdf5

if sys.platform == "win32":
    pytest.skip("needs limits", allow_module_level=True)
import resource


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Within it this process cannot write files of more than so many bytes, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    write_hdf5(folder / "old", seed=1)
    layouts.write(settled(layouts.read(folder / "old")), folder / "model", "bilmo")
    return folder / "model"


@pytest.mark.parametrize("ending", [".h5", ".npz", ".npy", ".jsonl", ".jsonl.gz", ".parquet"])
def test_parts_are_kept_when_they_cannot_be_joined(tmp_path, model, ending, monkeypatch):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    (tmp_path / "text.txt").write_text("".join(f"w{n}\n" for n in range(150)))
    command = ("embed", model, "text.txt", "-o", f"v{ending}", "--mix", "all", "--lang", "spaces")
    assert program(tmp_path, *command).code == 0
    size = (tmp_path / f"v{ending}").stat().st_size
    for file in tmp_path.glob("v*"):
        file.unlink()
    work = tmp_path / f".v{ending}.parts"
    monkeypatch.setattr(job, "PART_TOKENS", 60)  # any number of small parts fit
    with largest_file(size - 1000):
        found = program(tmp_path, *command)
    assert (found.code, found.out) == (1, "")
    assert f"v{ending}: cannot be written (File too large)" in found.err
    assert sorted(path.name for path in tmp_path.iterdir()) == [work.name, "text.txt"]
    assert list(tmp_path.rglob("*.partial")) == []
    again = program(tmp_path, *command)
    assert again.code == 0 and "note: resumed; 150 of 150 sentences are already done" in again.err
    assert not work.exists()


@pytest.mark.parametrize("limit", [0, 500, 3000, 9000])
def test_a_model_that_cannot_be_written_leaves_nothing(tmp_path, model, limit):
    for to in ("allennlp", "bilmo"):
        with largest_file(limit):
            found = program(tmp_path, "convert", model, "new", "--to", to)
        assert (found.code, found.out) == (1, "")
        assert found.err.startswith("bilmo: new: cannot be written (") and "File too large" in found.err
        assert list(tmp_path.iterdir()) == []

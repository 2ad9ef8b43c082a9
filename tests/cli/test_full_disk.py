"""Commands on a disk that is full: a clear error, nothing half-written, and what was computed is kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bilmo.embed.loaded import settled
from bilmo.formats import open as layouts
from program import program

from old_models import write_hdf5

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs limits")
LIMITED = """
import resource, sys
import bilmo.embed.job
from bilmo.cli.app import main

bilmo.embed.job.PART_TOKENS = 60
limit = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
main()
"""
"""The program, in a process that cannot write files of more than so many bytes, but any number of small parts."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    write_hdf5(folder / "old", seed=1)
    layouts.write(settled(layouts.read(folder / "old")), folder / "model", "bilmo")
    return folder / "model"


def limited(folder: Path, limit: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", LIMITED, str(limit), *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("ending", [".h5", ".npz", ".npy", ".jsonl", ".jsonl.gz", ".parquet"])
def test_parts_are_kept_when_they_cannot_be_joined(tmp_path, model, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    (tmp_path / "text.txt").write_text("".join(f"w{n}\n" for n in range(150)))
    command = ("embed", model, "text.txt", "-o", f"v{ending}", "--mix", "all", "--lang", "spaces")
    assert program(tmp_path, *command).code == 0
    size = (tmp_path / f"v{ending}").stat().st_size
    for file in tmp_path.glob("v*"):
        file.unlink()
    work = tmp_path / f".v{ending}.parts"
    found = limited(tmp_path, size - 1000, *command)
    assert (found.returncode, found.stdout) == (1, "")
    assert f"v{ending}: cannot be written (File too large)" in found.stderr
    assert "Traceback" not in found.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [work.name, "text.txt"]
    assert list(tmp_path.rglob("*.partial")) == []
    again = program(tmp_path, *command)
    assert again.code == 0 and "note: resumed; 150 of 150 sentences are already done" in again.err
    assert not work.exists()


@pytest.mark.parametrize("limit", [0, 500, 3000, 9000])
def test_a_model_that_cannot_be_written_leaves_nothing(tmp_path, model, limit):
    for to in ("allennlp", "bilmo"):
        found = limited(tmp_path, limit, "convert", model, "new", "--to", to)
        assert (found.returncode, found.stdout) == (1, "")
        assert found.stderr.startswith("bilmo: new: cannot be written (") and "File too large" in found.stderr
        assert list(tmp_path.iterdir()) == []

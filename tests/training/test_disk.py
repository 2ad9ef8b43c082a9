"""Full disks, folders that cannot be written, and what killed processes leave behind."""

import contextlib
import errno
import os
import resource
from pathlib import Path

import pytest
from safetensors import SafetensorError
from safetensors.torch import save_file

import bilmo
from bilmo.errors import DamagedFile, OutputError
from bilmo.store import checkpoint, tensors_file
from bilmo.training.events import Progress, Step
from bilmo.training.run import train
from program import program
from small_runs import recipe, same_bits, weights, write_text

COMMAND = ("train", "text.txt", "-o", "model", "--recipe", "recipe.toml")


@contextlib.contextmanager
def files_up_to(limit):
    """The system lets no file grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def stopped(tmp_path):
    """A run that was stopped after its first checkpoint and its first evaluation."""
    text = write_text(tmp_path)
    events = train([text], tmp_path / "model", recipe(tmp_path))
    for event in events:
        if isinstance(event, Step) and event.number == 14:
            break
    events.close()
    return tmp_path, text


def left_over(folder):
    return [path for path in folder.rglob("*") if path.name.endswith(".partial")]


@pytest.mark.parametrize("what", ["training/checkpoint.safetensors", "model.safetensors"])
def test_a_disk_that_is_full_leaves_the_last_checkpoint_and_model_whole(stopped, what):
    folder, text = stopped
    model = folder / "model"
    before = {name: (model / name).read_bytes() for name in ("training/checkpoint.safetensors", "model.safetensors")}
    with files_up_to(len(before[what]) // 2), pytest.raises(OutputError, match="cannot be written"):
        list(train([text], model, recipe(folder)))
    assert checkpoint.read(model / "training" / "checkpoint.safetensors", Progress).progress.steps >= 10
    assert bilmo.load(model).embed([["the", "cat"]], mix="mean")[0].shape == (2, 16)
    assert (model / what).read_bytes() == before[what]
    assert not left_over(model)
    list(train([text], model, recipe(folder)))  # there is room again
    list(train([text], folder / "undisturbed", recipe(folder)))
    assert same_bits(weights(model), weights(folder / "undisturbed"))


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), SafetensorError("I/O error: No space left on device")]
)
def test_a_checkpoint_that_fails_leaves_the_old_one(stopped, monkeypatch, error):
    folder, text = stopped
    path = folder / "model" / "training" / "checkpoint.safetensors"
    before = path.read_bytes()

    def half(tensors, target, metadata):
        if "checkpoint" not in target.name:
            return save_file(tensors, target, metadata)
        target.write_bytes(before[: len(before) // 2])
        raise error

    monkeypatch.setattr(tensors_file, "save_file", half)
    with pytest.raises(OutputError, match=r"checkpoint.safetensors: .*cannot be written .*No space left on device"):
        list(train([text], folder / "model", recipe(folder)))
    assert path.read_bytes() == before and not left_over(folder)


def test_a_disk_that_is_full_while_the_text_is_read_leaves_nothing(tmp_path):
    write_text(tmp_path, lines=400)
    with files_up_to(2000):
        done = program(tmp_path, *COMMAND)
    assert done.code == 1 and "corpus: cannot be written (File too large)" in done.err
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("text.txt/model", "text.txt/model: cannot be written (Not a directory)"),
        ("/proc/self/model", "/proc/self/model: cannot be written: the folder /proc/self cannot hold new files"),
        ("/proc/model", "/proc/model: cannot be written: the folder /proc cannot hold new files"),
        ("n" * 300, "cannot be written (File name too long)"),
    ],
)
def test_a_place_that_cannot_hold_files_is_an_error(tmp_path, place, says):
    if not Path("/proc/self").is_dir():
        pytest.skip("there is no /proc")
    write_text(tmp_path)
    done = program(tmp_path, "train", "text.txt", "-o", place, "--recipe", "recipe.toml")
    assert done.code == 1 and says in done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_folder_that_may_not_be_written_is_named(stopped):
    folder, _ = stopped
    for path in (folder / "model" / "training", folder / "model"):
        path.chmod(0o500)
    try:
        done = program(folder, *COMMAND)
    finally:
        for path in (folder / "model", folder / "model" / "training"):
            path.chmod(0o700)
    assert done.code == 1 and "cannot be written" in done.err


def test_a_disk_that_became_read_only_leaves_the_last_checkpoint_whole(stopped, monkeypatch):
    folder, text = stopped
    path = folder / "model" / "training" / "checkpoint.safetensors"
    before = path.read_bytes()

    def refuse(*arguments, **more):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "touch", refuse)
    with pytest.raises(OutputError, match=r"cannot be written \(Read-only file system\)"):
        list(train([text], folder / "model", recipe(folder)))
    assert path.read_bytes() == before


def test_files_that_a_killed_process_left_incomplete_are_removed_by_the_next_run(stopped):
    folder, text = stopped
    work = folder / "model" / "training"
    (work / ".checkpoint.safetensors.bilmo-0a1b2c3d.partial").write_bytes(b"half")
    (folder / "model" / ".bilmo-abcdefgh.partial").mkdir()
    (folder / "model" / ".bilmo-abcdefgh.partial" / "model.safetensors").write_bytes(b"half")
    next(train([text], folder / "model", recipe(folder)))
    assert not left_over(folder)


def test_a_damaged_checkpoint_is_named(stopped):
    folder, text = stopped
    path = folder / "model" / "training" / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(
        DamagedFile, match=r"checkpoint.safetensors: cannot be read as safetensors .* Remove it to start over"
    ):
        list(train([text], folder / "model", recipe(folder)))

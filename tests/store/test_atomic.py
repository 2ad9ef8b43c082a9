"""A target is the old file or the complete new one, never a part; so are the files that a run publishes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from bilmo.errors import DamagedFile, OutputError
from bilmo.store import atomic
from bilmo.store.atomic import new_file, new_files, new_folder, read_published


@pytest.fixture(autouse=True)
def no_part_is_left(tmp_path):
    yield
    assert list(tmp_path.rglob("*.partial")) == []


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_appears_when_it_is_complete(tmp_path):
    with new_folder(tmp_path / "new") as partial:
        (partial / "a").write_text("1")
        assert not (tmp_path / "new").exists()
        assert partial.parent == tmp_path
    assert (tmp_path / "new" / "a").read_text() == "1"


def test_a_file_replaces_the_old_one_when_it_is_complete(tmp_path):
    target = tmp_path / "out.h5"
    for text in ("one", "two"):
        before = target.read_text() if target.exists() else None
        with new_file(target) as partial:
            partial.write_text(text)
            assert (target.read_text() if target.exists() else None) == before
        assert target.read_text() == text


def test_an_empty_folder_may_be_filled(tmp_path):
    (tmp_path / "new").mkdir()
    with new_folder(tmp_path / "new") as partial:
        (partial / "a").write_text("1")
    assert (tmp_path / "new" / "a").exists()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("new", [new_file, new_folder])
def test_nothing_is_left_when_the_work_fails(tmp_path, new, error):
    with pytest.raises(error), new(tmp_path / "new") as partial:
        if new is new_folder:
            (partial / "a").write_text("half")
        else:
            partial.write_text("half")
        raise error
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_the_old_file_as_it_was(tmp_path):
    (tmp_path / "out").write_text("old")
    with pytest.raises(ValueError, match="x"), new_file(tmp_path / "out") as partial:
        partial.write_text("half")
        raise ValueError("x")
    assert (tmp_path / "out").read_text() == "old"


@pytest.mark.parametrize("kind", ["folder with files", "file", "link to nowhere", "link to an empty folder"])
def test_a_folder_that_exists_is_never_touched(tmp_path, kind):
    target = tmp_path / "new"
    if kind == "folder with files":
        target.mkdir()
        (target / "precious").write_text("x")
    elif kind == "file":
        target.write_text("precious")
    else:
        (tmp_path / "empty").mkdir()
        target.symlink_to("nowhere" if kind == "link to nowhere" else "empty")
    before = sorted(tmp_path.rglob("*"))
    says = r"new: already exists\. Choose another name, or remove it first"
    with pytest.raises(OutputError, match=says), new_folder(target):
        pytest.fail("there is nothing to fill")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_cannot_be_replaced_by_a_file(tmp_path):
    with pytest.raises(OutputError, match=r"this is a folder. Name a file to write"), new_file(tmp_path):
        pytest.fail("there is nothing to fill")


@pytest.mark.parametrize("new", [new_file, new_folder])
def test_a_missing_parent_is_named(tmp_path, new):
    with (
        pytest.raises(OutputError, match=r"x/y: the folder .*/x does not exist\. Create it first"),
        new(tmp_path / "x/y"),
    ):
        pytest.fail("there is nothing to fill")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("new", [new_file, new_folder])
@pytest.mark.parametrize(
    "name", ["file/inside", "n" * 300, "n" * 250], ids=["in a file", "too long", "almost too long"]
)
def test_an_impossible_name_is_refused(tmp_path, new, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"), new(tmp_path / name):
        pytest.fail("there is nothing to fill")


@pytest.mark.parametrize("new", [new_file, new_folder])
def test_a_folder_that_may_not_be_written_is_named(tmp_path, new):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    if os.access(closed, os.W_OK):
        pytest.skip("this user may write everywhere")
    with pytest.raises(OutputError, match="cannot be written"), new(closed / "new"):
        pytest.fail("there is nothing to fill")


def test_a_full_disk_is_reported_as_a_user_error(tmp_path):
    says = r"new: cannot be written \(No space left on device\)"
    with pytest.raises(OutputError, match=says), new_folder(tmp_path / "new") as partial:
        (partial / "a").write_text("half")
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_of_two_writers_of_one_folder_the_first_wins(tmp_path):
    with new_folder(tmp_path / "new") as first:
        (first / "a").write_text("first")
        with pytest.raises(OutputError, match="new: "), new_folder(tmp_path / "new") as second:
            (second / "a").write_text("second")
            first.rename(tmp_path / "new")
        (tmp_path / "new").rename(first)
    assert (tmp_path / "new" / "a").read_text() == "first"


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_written_files_have_the_permissions_of_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        with new_folder(tmp_path / "folder") as partial:
            (partial / "a").write_text("1")
        with new_file(tmp_path / "file") as partial:
            partial.write_text("1")
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert mode(tmp_path / "folder") == 0o777 & ~mask
    assert mode(tmp_path / "folder" / "a") == mode(tmp_path / "file") == 0o666 & ~mask


def test_the_umask_of_the_process_is_never_set(tmp_path, monkeypatch):
    """It belongs to all threads: one that makes a file at the same time would make it with the wrong permissions."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask was set"))
    with new_folder(tmp_path / "folder") as partial:
        (partial / "a").write_text("1")
    with new_file(tmp_path / "file") as partial:
        partial.write_text("1")


def test_a_file_that_a_writer_replaced_by_a_private_one_has_normal_permissions(tmp_path):
    (tmp_path / "usual").touch()
    with new_file(tmp_path / "file") as partial:
        partial.unlink()
        partial.touch(0o600)
    assert mode(tmp_path / "file") == mode(tmp_path / "usual")


def test_a_folder_is_on_the_disk_before_it_is_renamed(tmp_path, monkeypatch):
    done: list[tuple[str, str]] = []
    sync, rename = atomic.sync, Path.rename
    monkeypatch.setattr(atomic, "sync", lambda path: (done.append(("sync", path.name)), sync(path)))
    monkeypatch.setattr(Path, "rename", lambda path, new: (done.append(("rename", path.name)), rename(path, new)))
    with new_folder(tmp_path / "new") as partial:
        (partial / "a").write_text("1")
    assert done == [("sync", "a"), ("sync", partial.name), ("rename", partial.name), ("sync", tmp_path.name)]


def test_relative_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with new_folder(Path("a")) as partial:
        (partial / "x").write_text("1")
    with new_file(Path("b")) as partial:
        partial.write_text("1")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "x"]


PUBLISHED = ("config.json", "task.safetensors", "bilm/config.json", "bilm/model.safetensors")


def publish(folder: Path, version: str) -> None:
    with new_files(folder) as partial:
        (partial / "bilm").mkdir()
        for name in PUBLISHED:
            (partial / name).write_text(version)


def versions(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text() for name in PUBLISHED if (folder / name).exists()}


@pytest.fixture
def published(tmp_path):
    publish(tmp_path, "old")
    (tmp_path / "kept.txt").write_text("kept")
    return tmp_path


def test_published_files_are_replaced_one_by_one_and_each_config_after_what_it_describes(published, monkeypatch):
    """No file is missing at any moment, and the new config.json is there only when all the others are."""
    replace, seen = Path.replace, []

    def watched(self, target):
        replace(self, target)
        seen.append(versions(published))

    monkeypatch.setattr(Path, "replace", watched)
    publish(published, "new")
    assert len(seen) == len(PUBLISHED) and all(found.keys() == set(PUBLISHED) for found in seen)
    assert [found["config.json"] for found in seen] == ["old"] * (len(PUBLISHED) - 1) + ["new"]
    assert not any(found["bilm/config.json"] == "new" and found["bilm/model.safetensors"] == "old" for found in seen)
    assert set(seen[-1].values()) == {"new"}
    assert (published / "kept.txt").read_text() == "kept"


@pytest.mark.parametrize("after_the_rename", [False, True])
def test_repeated_ctrl_c_never_leaves_files_of_two_versions(published, monkeypatch, after_the_rename):
    replace, pressed = Path.replace, []

    def impatient(self, target):
        if after_the_rename:
            replace(self, target)
        if pressed.count(target) < 2:
            pressed.append(target)
            raise KeyboardInterrupt
        if not after_the_rename:
            replace(self, target)

    monkeypatch.setattr(Path, "replace", impatient)
    with pytest.raises(KeyboardInterrupt):
        publish(published, "new")
    assert len(pressed) >= len(PUBLISHED)
    assert versions(published) == dict.fromkeys(PUBLISHED, "new")


def test_all_files_are_on_the_disk_before_the_first_is_replaced(published, monkeypatch):
    done = []
    sync, replace = atomic.sync, Path.replace
    monkeypatch.setattr(atomic, "sync", lambda path: (done.append(("sync", path.name)), sync(path)))
    monkeypatch.setattr(Path, "replace", lambda self, to: (done.append(("replace", to.name)), replace(self, to)))
    publish(published, "new")
    kinds = [kind for kind, _ in done]
    assert kinds == ["sync"] * 4 + ["replace"] * 4 + ["sync"] * 2  # the files; then the two folders
    assert sorted(name for _, name in done[:4]) == sorted(name for _, name in done[4:8])


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_publication_that_fails_changes_nothing(published, error):
    with pytest.raises(error), new_files(published) as partial:
        (partial / "config.json").write_text("new")
        raise error
    assert versions(published) == dict.fromkeys(PUBLISHED, "old")


def test_a_reader_gets_all_of_the_new_files(published):
    def read(config: str) -> str:
        if config == "old":
            publish(published, "new")  # between its config and its weights
        weights = (published / "bilm/model.safetensors").read_text()
        if weights != config:
            raise DamagedFile("the hash differs")
        return weights

    assert read_published(lambda: (published / "config.json").read_text(), read) == "new"


def test_files_that_do_not_fit_and_do_not_change_are_refused(published):
    def damaged(config: str) -> str:
        raise DamagedFile("the hash differs")

    with pytest.raises(DamagedFile, match="the hash differs"):
        read_published(lambda: (published / "config.json").read_text(), damaged)


@pytest.mark.parametrize("new", [new_file, new_folder])
def test_a_folder_that_can_hold_no_files_is_named(new):
    if not Path("/proc/self").is_dir():
        pytest.skip("there is no /proc")
    with (
        pytest.raises(OutputError, match=r"v: cannot be written: the folder /proc/self cannot"),
        new(Path("/proc/self/v")),
    ):
        pytest.fail("there is nothing to fill")

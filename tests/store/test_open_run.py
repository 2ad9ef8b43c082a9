"""A run: one process at a time, resumed only as what it was started as, nothing left of one that was never started."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from bilmo.errors import ConfigError, OutputError
from bilmo.store import run as runs
from bilmo.store.run import Identity, Run, open_run

IDENTITY = Identity({"train": {"seed": 1, "minutes": None}, "words": (1, 2)}, {"the text": "aaaa"})

KEEPS = ("kept", "corpus", "half", "*.part")


def in_folder(folder: Path, identity: Identity | None = IDENTITY, kind: str = "training run"):
    return open_run(folder, folder / "training", kind=kind, identity=identity, keeps=KEEPS)


def beside(file: Path, identity: Identity | None = IDENTITY):
    work = file.with_name(f".{file.name}.parts")
    return open_run(file, work, kind="embedding run", identity=identity, keeps=KEEPS)


@pytest.fixture(params=[in_folder, beside])
def opened(request, tmp_path):
    """A function that opens the run of one output."""
    return lambda *more: request.param(tmp_path / "output", *more)


def test_a_run_that_was_started_is_resumed_with_all_it_kept(opened):
    for resumed in (False, True, True):
        with opened() as run:
            assert run.resumed == resumed
            assert (run.work / "kept").exists() == resumed
            run.start()
            (run.work / "kept").write_text("x")


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_a_run_that_was_never_started_leaves_nothing(opened, tmp_path, error):
    with ExitStack() as stack:
        if error:
            stack.enter_context(pytest.raises(error))
        run: Run = stack.enter_context(opened())
        (run.work / "corpus").mkdir()
        if error:
            raise error
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_done_can_leave_nothing(opened, tmp_path):
    with opened() as run:
        run.start()
    with opened() as run:
        run.remove()
    assert not list(tmp_path.rglob("*.*"))


def test_a_run_that_cannot_be_repeated_keeps_nothing(opened, tmp_path):
    with opened(None) as run:
        assert not run.resumed
        run.start()
        (run.work / "kept").write_text("x")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_cannot_be_repeated_does_not_destroy_one_that_can(opened):
    with opened() as run:
        run.start()
        (run.work / "kept").write_text("x")
    with pytest.raises(OutputError, match=r"output: holds an unfinished run; finish it, or remove "), opened(None):
        pytest.fail("there is a run")
    with opened() as run:
        assert run.resumed and (run.work / "kept").exists()


def test_a_folder_that_is_removed_during_the_run_does_not_hide_the_error(opened, tmp_path):
    with pytest.raises(ValueError, match="the real one"), opened() as run:
        shutil.rmtree(run.work)
        raise ValueError("the real one")
    with opened() as run:  # it is not locked
        assert not run.resumed
    assert list(tmp_path.iterdir()) == []


def test_a_clean_up_that_fails_releases_the_lock(opened, monkeypatch):
    def fail(*given: object, **more: object) -> None:
        raise PermissionError("the folder")

    with ExitStack() as stack, monkeypatch.context() as patch:
        stack.enter_context(pytest.raises(PermissionError))
        stack.enter_context(opened())
        patch.setattr(runs, "_remove_leftovers", fail)
        stack.close()
    with opened() as run:
        assert not run.resumed


def test_what_a_killed_process_left_is_removed(opened, tmp_path):
    with opened() as run:
        run.start()
        (run.work / "kept").write_text("x")
        (run.work / ".kept.bilmo-01234567.partial").write_text("half")
        if run.work.parent.name == "output":
            (run.work.parent / ".bilmo-abcdefgh.partial").mkdir()
    with opened() as run:
        assert (run.work / "kept").exists()
        assert not list(tmp_path.rglob("*.partial"))


def test_work_that_a_killed_process_did_before_it_was_started_is_done_again(opened):
    with opened() as run:
        run.start()
        (run.work / "half").mkdir()
        (run.work / "run.json").unlink()
        saved = {path: path.read_bytes() for path in run.work.rglob("*") if path.is_file()}
        work = run.work
    (work / "half").mkdir(parents=True)
    for path, content in saved.items():
        path.write_bytes(content)
    with opened() as run:
        assert not run.resumed and not (run.work / "half").exists()


def test_a_second_process_is_refused_and_harms_nothing(opened, tmp_path):
    with opened() as run:
        with pytest.raises(OutputError, match=r"output: another process is working on it"), opened():
            pytest.fail("it is locked")
        assert (run.work / "bilmo.lock").exists()
        run.start()
        with pytest.raises(OutputError, match=r"output: another process is working on it"), opened():
            pytest.fail("it is locked")
    with opened() as run:
        assert run.resumed


def test_each_difference_is_named_and_the_run_stays(opened, tmp_path):
    with opened() as run:
        run.start()
    other = Identity(
        {"train": {"seed": 7, "minutes": 2.5, "new": "x"}, "words": (1, 2)}, {"the text": "b", "the model": "c"}
    )
    with pytest.raises(ConfigError) as caught, opened(other):
        pytest.fail("it is another run")
    lines = str(caught.value).splitlines()
    assert lines[0].endswith("output: was started with different settings or inputs and cannot be resumed.")
    assert lines[1:-1] == [
        "  train.seed was 1 and is now 7",
        "  train.minutes was not set and is now 2.5",
        "  train.new was not set and is now 'x'",
        "  the text: not the same as when the run was started",
        "  the model: not the same as when the run was started",
    ]
    assert lines[-1].startswith("To resume it, use the same settings") and "To start over, choose" in lines[-1]
    with opened() as run:
        assert run.resumed


def test_a_run_of_another_kind_is_refused(tmp_path):
    with in_folder(tmp_path / "output") as run:
        run.start()
    with (
        pytest.raises(OutputError, match=r"output: contains a training run, not a fit"),
        in_folder(tmp_path / "output", IDENTITY, "fit"),
    ):
        pytest.fail("it is another run")
    assert (tmp_path / "output" / "training" / "run.json").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"recipe": {}, "texts": [], "lang": "en"}', r"started by another version of bilmo \(run format 1"),
        ('{"bilmo_run": 3, "kind": "training run"}', r"started by another version of bilmo \(run format 3"),
        ("{", "cannot be resumed, because its description is damaged.*run.json: is not JSON"),
        ("", "cannot be resumed, because its description is damaged.*run.json: is not JSON"),
        ("\0" * 100, "cannot be resumed, because its description is damaged.*run.json: is not JSON"),
        ("[" * 100_000, "cannot be resumed, because its description is damaged.*run.json: is not JSON"),
        ("[]", "cannot be resumed, because its description is damaged.*run.json: invalid settings"),
        (
            '{"bilmo_run": 2, "settings": {}}',
            "cannot be resumed, because its description is damaged.*kind: Field required",
        ),
        (
            '{"bilmo_run": 2, "kind": "training run", "settings": 5, "inputs": {}}',
            "cannot be resumed, because its description is damaged.*settings: .*found 5",
        ),
        (
            '{"bilmo_run": 2, "kind": "training run", "settings": {}, "inputs": ["x"]}',
            "cannot be resumed, because its description is damaged.*inputs: .*found \\['x'\\]",
        ),
    ],
)
def test_a_run_of_another_version_or_a_damaged_one_is_refused(opened, content, says):
    with opened() as run:
        run.start()
        description = run.work / "run.json"
    description.write_text(content)
    with pytest.raises(OutputError, match=f"(?s){says}.*To start over"), opened():
        pytest.fail("it cannot be resumed")
    assert description.read_text() == content


def test_what_a_run_was_started_with_can_be_read(opened):
    with opened() as run:
        run.start()
        assert json.loads((run.work / "run.json").read_bytes())["settings"]["train"]["seed"] == 1


@pytest.mark.parametrize("name", ["precious.txt", "training/precious.txt", "training/run.txt"])
def test_a_folder_that_no_run_made_is_left_alone(tmp_path, name):
    precious = tmp_path / "output" / name
    precious.parent.mkdir(parents=True)
    precious.write_text("mine")
    with pytest.raises(OutputError, match="already exists and is not a training run"), in_folder(tmp_path / "output"):
        pytest.fail("it is not ours")
    assert precious.read_text() == "mine"


def test_a_work_folder_that_no_run_made_is_left_alone(tmp_path):
    precious = tmp_path / ".output.parts" / "precious.txt"
    precious.parent.mkdir()
    precious.write_text("mine")
    for identity in (IDENTITY, None):
        with (
            pytest.raises(OutputError, match=r"\.output\.parts: already exists and was not made by bilmo"),
            beside(tmp_path / "output", identity),
        ):
            pytest.fail("it is not ours")
    assert [path.name for path in precious.parent.iterdir()] == ["precious.txt"]


# What is not ours


def left(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("entry", ["", "bilmo.lock", "run.json", "kept"])
def test_a_work_folder_that_is_a_link_is_refused_and_nothing_behind_it_is_touched(tmp_path, opened, entry):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    if entry:
        (theirs / entry).write_text("{}")
        (theirs / "00000.part").write_text("mine")
    before = left(theirs)
    with opened() as run:
        work = run.work
    work.parent.mkdir(exist_ok=True)
    work.symlink_to(theirs, target_is_directory=True)
    with (
        pytest.raises(OutputError, match=rf"{work.name}: is a link, which bilmo does not follow\. Remove it"),
        opened(),
    ):
        pytest.fail("it is a link")
    assert left(theirs) == before and work.is_symlink()


@pytest.mark.parametrize("name", ["kept", "corpus", "bilmo.lock", "run.json", ".kept.bilmo-01234567.partial"])
def test_a_link_in_a_work_folder_is_refused_and_not_followed(tmp_path, opened, name):
    (tmp_path / "precious").write_text("mine")
    for is_started in (False, True):
        with opened() as run:
            if is_started:
                run.start()
            work = run.work
        work.mkdir(parents=True, exist_ok=True)
        (work / "bilmo.lock").touch()
        (work / name).unlink(missing_ok=True)
        (work / name).symlink_to(tmp_path / "precious")
        with pytest.raises(OutputError, match=rf"{name}: is a link, which bilmo does not follow"), opened():
            pytest.fail("there is a link")
        assert (work / name).is_symlink() and left(tmp_path)["precious"] == "mine"
        shutil.rmtree(work)


def test_a_pipe_in_a_work_folder_is_refused_and_not_opened(opened):
    with opened() as run:
        run.start()
        os.mkfifo(run.work / "kept")
    with pytest.raises(OutputError, match="kept: is neither a file nor a folder"), opened():
        pytest.fail("there is a pipe")


def test_a_folder_of_the_user_with_a_lock_of_ours_is_refused(tmp_path, opened):
    with opened() as run:
        work = run.work
    work.mkdir(parents=True)
    for name in ("bilmo.lock", "precious.txt", "00000.part"):
        (work / name).write_text(name)
    before = left(tmp_path)
    with (
        pytest.raises(OutputError, match=r"already exists and (was not made by bilmo; it contains precious|is not)"),
        opened(),
    ):
        pytest.fail("it is not ours")
    assert left(tmp_path) == before


@pytest.mark.parametrize("ends", ["complete", "interrupted"])
def test_files_that_the_user_puts_into_a_work_folder_are_never_removed(opened, ends):
    with opened() as run:
        run.start()
        work = run.work
    (work / "notes.txt").write_text("mine")
    (work / ".notes.partial").write_text("mine")
    (work / "link").symlink_to("notes.txt")
    with ExitStack() as stack:
        if ends == "interrupted":
            stack.enter_context(pytest.raises(KeyboardInterrupt))
        run = stack.enter_context(opened())
        assert run.resumed
        (run.work / "kept").write_text("x")
        (run.work / "half").symlink_to(work / "notes.txt")  # a link of a name of ours, made during the run
        run.remove()
        if ends == "interrupted":
            raise KeyboardInterrupt
    assert left(work) == {"notes.txt": "mine", ".notes.partial": "mine", "link": "mine", "half": "mine"}


def test_hidden_files_of_the_user_in_the_output_are_never_removed(tmp_path):
    with in_folder(tmp_path / "output") as run:
        run.start()
    for name in (".download.partial", ".1.partial"):
        (tmp_path / "output" / name).write_text("mine")
    with in_folder(tmp_path / "output") as run:
        assert run.resumed
    assert sorted(left(tmp_path / "output")) == [
        ".1.partial",
        ".download.partial",
        "training/bilmo.lock",
        "training/run.json",
    ]


def test_an_empty_folder_of_the_user_is_used_and_stays(tmp_path, opened):
    with opened() as run:
        work = run.work
    work.mkdir(parents=True)
    with opened() as run:
        (run.work / "kept").write_text("x")
    assert work.is_dir() and not any(work.iterdir())


def test_folders_that_had_to_be_made_are_removed_again(tmp_path):
    (tmp_path / "mine").mkdir()
    for place in ("new/output", "mine/new/output", "mine"):
        with in_folder(tmp_path / place):
            pass
    assert [path.name for path in tmp_path.rglob("*")] == ["mine"]


HOPELESS = ["file.txt/output", "n" * 300, "/proc/self/output", "/proc/output"]


@pytest.mark.parametrize("place", HOPELESS, ids=["in a file", "too long", "in a process", "in /proc"])
def test_a_place_that_cannot_hold_files_is_an_error_at_once(opened, tmp_path, monkeypatch, place):
    if place.startswith("/proc") and not Path("/proc/self").is_dir():
        pytest.skip("there is no /proc")
    monkeypatch.chdir(tmp_path)
    Path("file.txt").write_text("x")
    for open_it in (in_folder, beside):
        with pytest.raises(OutputError, match=r"(output|nnn): cannot be written"), open_it(Path(place)):
            pytest.fail("nothing can be written there")
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]


def test_runs_that_end_while_others_begin_never_work_at_once(tmp_path):
    """The folder with its lock is removed by each run that ends, while others try to lock it."""
    code = (
        "import sys; from pathlib import Path; from bilmo.errors import OutputError\n"
        "from bilmo.store.run import open_run\n"
        "place, done = Path(sys.argv[1]), 0\n"
        "while done < 30:\n"
        "    try:\n"
        "        with open_run(place, place / 'training', kind='test', identity=None, keeps=['alone']) as run:\n"
        "            (run.work / 'alone').touch(exist_ok=False)\n"
        "        done += 1\n"
        "    except OutputError as error: assert 'another process' in str(error), error\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "output")], env=os.environ, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for process in processes:
        _, said = process.communicate()
        assert process.returncode == 0, said.decode()

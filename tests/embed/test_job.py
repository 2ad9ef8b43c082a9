"""A long run that is killed anywhere and resumed gives what an undisturbed one gives, in constant memory.

Runs are forked from one process that has imported everything and computed nothing, so that starting many is cheap.
"""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest

import bilmo
from bilmo.embed import job
from bilmo.embed.inputs import Inputs
from bilmo.embed.job import EmbedSettings, Finished, Started, Step
from bilmo.embed.loaded import settled
from bilmo.embed.output.parts import Parts, folder_of
from bilmo.errors import ConfigError, OutputError, TextError
from bilmo.formats import open as layouts

from old_models import write_hdf5

LINES = 150
FORKS = """
import contextlib, json, os, resource, signal, sys
import torch
import bilmo.cli.app, bilmo.embed.job as job, bilmo.embed.output.hdf5
from bilmo.embed.embedder import Embedder
from bilmo.embed.output.parts import Parts

torch.set_num_threads(1)
for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if child:
        print(child, flush=True)
        _, status = os.waitpid(child, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            print("stopped", flush=True)
            _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
        continue
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it may have been ignored in the background
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(order[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    for name, value in order["sizes"].items():
        setattr(job, name, value)
    computed = 0
    usual = Embedder.embed_rows
    def counted(self, rows, **settings):
        global computed
        computed += len(rows)
        return usual(self, rows, **settings)
    Embedder.embed_rows = counted
    if order["after_part"]:
        plain = Parts.new
        @contextlib.contextmanager
        def signalled(self, *given):
            with plain(self, *given) as part:
                yield part
            Parts.new = plain
            signal.raise_signal(order["after_part"])
        Parts.new = signalled
    sys.argv = ["bilmo", *order["arguments"]]
    code = 0
    try:
        bilmo.cli.app.main()
    except SystemExit as stop:
        code = stop.code or 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.flush(), sys.stderr.flush()
    with open(order["facts"], "w") as file:
        json.dump({"computed": computed, "peak": peak}, file)
    os._exit(code)
"""


class Forks:
    """The process that runs are forked from, and the current run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([sys.executable, "-c", FORKS], **pipes)

    def start(self, *arguments: object, after_part: int = 0, **sizes: int) -> int:
        """Start a run; returns its process id.

        after_part: a signal that the run sends to itself when its first part is finished.
        """
        names = {name: str(self.folder / name) for name in ("out", "err", "facts")}
        (self.folder / "facts").unlink(missing_ok=True)
        order = names | {"after_part": after_part, "sizes": sizes, "arguments": list(map(str, arguments))}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def wait_until_stopped(self) -> None:
        """Wait until SIGSTOP has stopped the run; fail if it has ended instead."""
        assert self.process.stdout.readline() == "stopped\n"

    def end(self) -> SimpleNamespace:
        """Wait until the run has ended."""
        code = int(self.process.stdout.readline())
        facts = json.loads((self.folder / "facts").read_text()) if (self.folder / "facts").exists() else {}
        return SimpleNamespace(code=code, err=(self.folder / "err").read_text(), **facts)

    def run(self, *arguments: object, after_part: int = 0, **sizes: int) -> SimpleNamespace:
        self.start(*arguments, after_part=after_part, **sizes)
        return self.end()


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    if sys.platform == "win32":
        pytest.skip("needs fork")
    forks = Forks(tmp_path_factory.mktemp("forks"))
    yield forks
    forks.process.communicate()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    write_hdf5(folder / "old", seed=1)
    layouts.write(settled(layouts.read(folder / "old")), folder / "model", "bilmo")
    return folder / "model"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    chosen = random.Random(1)
    lines = (
        " ".join(chosen.choices(["the", "cat", "naïve", "漢字", "."], k=chosen.randrange(9))) for _ in range(LINES)
    )
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path / "text.txt"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "v.h5"


def read(path: Path) -> list[np.ndarray]:
    with h5py.File(path) as file:
        return [file[str(k)][...] for k in range(len(file) - 1)]


def assert_same(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert [a.shape for a in found] == [b.shape for b in expected]
    assert all(np.abs(a - b).max(initial=0) < 1e-5 for a, b in zip(found, expected, strict=True))


# Killed and resumed


@pytest.mark.parametrize("start", ["settled", "carry"])
def test_a_run_killed_anywhere_and_resumed_gives_the_same_and_keeps_what_was_done(forks, model, text, out, start):
    command = ("embed", model, text, "-o", out, "--lang", "spaces", "--start", start)
    began = time.monotonic()
    assert forks.run(*command, PART_TOKENS=60).code == 0
    whole = time.monotonic() - began
    expected = read(out)
    assert len(expected) == LINES
    out.unlink()
    chosen = random.Random(7)
    done = [0]
    for _ in range(6):  # a run that ends before it is killed is accepted
        process = forks.start(*command, PART_TOKENS=60)
        time.sleep(chosen.uniform(0, whole / 2))
        subprocess.run(["kill", "-KILL", str(process)], check=False)
        killed = forks.end().code != 0
        late = killed and out.exists()  # the file was complete and only the parts had to be removed
        if late or not killed:
            break
        assert [path.name for path in out.parent.iterdir()] in ([], [folder_of(out).name])
        kept = sum(json.loads(comment(part))["sentences"] for part in parts(out))
        assert kept >= done[-1]
        done.append(kept)
    else:
        number = len(parts(out))
        last = forks.run(*command, PART_TOKENS=60)
        assert last.code == 0
        assert last.computed == LINES - done[-1]
        assert (f"note: resumed; {done[-1]} of {LINES} sentences are already done" in last.err) == (number > 0)
    assert_same(read(out), expected)
    left = {path.name for path in out.parent.iterdir()} - ({folder_of(out).name} if late else set())
    assert left == {out.name}


def parts(out: Path) -> list[Path]:
    return sorted(folder_of(out).glob("*.part"))


def comment(part: Path) -> bytes:
    with zipfile.ZipFile(part) as archive:
        return archive.comment[:-64]


def test_ctrl_c_keeps_finished_parts_and_says_so(forks, model, text, out):
    command = ("embed", model, text, "-o", out, "--lang", "spaces")
    stopped = forks.run(*command, PART_TOKENS=30, after_part=signal.SIGINT)
    assert stopped.code == 130
    assert "note: finished parts are kept; the same command resumes the run" in stopped.err
    assert f"To discard them: rm -r {folder_of(out)}" in stopped.err
    assert len(parts(out)) == 1
    assert "note: resumed; " in forks.run(*command, PART_TOKENS=30).err


def test_of_two_runs_at_once_the_second_is_refused(forks, model, text, out):
    command = ("embed", model, text, "-o", out, "--lang", "spaces")
    process = forks.start(*command, PART_TOKENS=30, after_part=signal.SIGSTOP)
    forks.wait_until_stopped()
    try:
        with pytest.raises(OutputError, match="another process is working on it"):
            events(model, text, out)
    finally:
        os.kill(process, signal.SIGCONT)
    assert forks.end().code == 0
    assert len(read(out)) == LINES


# In constant memory


def test_memory_does_not_grow_with_the_text(forks, tmp_path, out):
    write_hdf5(tmp_path / "old", width=64, cells=64, seed=1)
    layouts.write(settled(layouts.read(tmp_path / "old")), tmp_path / "wide", "bilmo")
    peaks = []
    for lines in (400, 4000):
        (tmp_path / "text").write_text("the cat sat on the mat and slept . the end\n" * lines)
        run = forks.run(
            "embed",
            tmp_path / "wide",
            tmp_path / "text",
            "-o",
            out,
            "--batch-tokens",
            512,
            "--overwrite",
            PART_BYTES=1 << 22,
        )
        assert run.code == 0, run.err
        peaks.append(run.peak / 1024)
    assert out.stat().st_size > 64e6
    assert peaks[1] - peaks[0] < 64


# In this process


def events(model: Path, text: Path, out: Path, **settings) -> list:
    elmo = bilmo.load(model, lang="spaces")
    return list(job.run(elmo, Inputs((str(text),)), out, EmbedSettings(lang="spaces", **settings)))


def test_a_run_reports_what_is_expected_and_what_was_done(model, text, out):
    first, *steps, last = events(model, text, out)
    tokens = len(text.read_text(encoding="utf-8").split())
    characters = sum(map(len, text.read_text(encoding="utf-8").split("\n")))
    assert first == Started(
        sentences=LINES, bytes=first.bytes, done_parts=0, done_sentences=0, characters=characters, done_characters=0
    )
    assert 0.9 < first.bytes / (tokens * 3 * 8 * 4) < 1.1
    assert all(isinstance(step, Step) for step in steps)
    assert (sum(s.sentences for s in steps), sum(s.tokens for s in steps)) == (LINES, tokens)
    assert sum(step.characters for step in steps) == characters
    assert last == Finished(LINES, tokens, [], "spaces")


@pytest.mark.parametrize(
    "settings",
    [{"mix": "mean"}, {"mix": "all"}, {"mix": "mean", "pool": "max"}, {"mix": 1, "pool": "mean", "dtype": "float16"}],
)
def test_a_long_line_advances_step_by_step_and_its_vectors_stay_the_same(model, tmp_path, settings):
    long = "  ".join(f"The cat sat on mat {number}. It didn't run!" for number in range(100))
    text, out = tmp_path / "long.txt", tmp_path / "v.npz"
    text.write_text(f"Short.\n{long}\n\nShort again.", encoding="utf-8")
    elmo = bilmo.load(model, lang="en", batch_tokens=20)
    first, *steps, last = job.run(elmo, Inputs((str(text),)), out, EmbedSettings(lang="en", **settings))
    assert first.characters == sum(step.characters for step in steps) == len("Short.") + len(long) + len("Short again.")
    assert sum(step.tokens for step in steps) == last.tokens
    assert sum(step.sentences for step in steps) == 4
    assert len(steps) > 10 and all(step.characters < first.characters / 5 for step in steps)
    with np.load(out) as found:
        if "pool" in settings:
            vectors, expected = found["vectors"][1], elmo.embed(long, **settings)
        else:
            begin, end = found["offsets"][1:3]
            vectors, expected = found["vectors"][..., begin:end, :], elmo.embed(long, **settings).vectors
        assert vectors.dtype == expected.dtype and np.allclose(
            vectors, expected, atol=1e-3 if "dtype" in settings else 1e-5
        )


def test_a_resumed_run_reports_the_characters_that_are_done(model, text, out, monkeypatch):
    stop_after(5, model, text, out, monkeypatch)
    first, *steps, _ = events(model, text, out)
    assert 0 < first.done_characters < first.characters
    assert first.done_characters + sum(step.characters for step in steps) == first.characters


def stop_after(steps: int, model: Path, text: Path, out: Path, monkeypatch, **settings) -> None:
    monkeypatch.setattr(job, "PART_TOKENS", 60)
    elmo = bilmo.load(model, lang="spaces")
    run = job.run(elmo, Inputs((str(text),)), out, EmbedSettings(lang="spaces", **settings))
    for _ in range(steps):
        next(run)
    run.close()


def test_different_settings_model_or_text_are_refused_and_named(model, text, out, tmp_path, monkeypatch):
    stop_after(5, model, text, out, monkeypatch)
    kept = len(parts(out))
    assert kept
    with pytest.raises(ConfigError, match=r"mix was 'all' and is now 'mean'\n  pool was 'none' and is now 'max'"):
        events(model, text, out, mix="mean", pool="max")
    write_hdf5(tmp_path / "other", seed=2)
    with pytest.raises(ConfigError, match="the model: not the same"):
        events(tmp_path / "other", text, out)
    text.write_text("other text")
    with pytest.raises(ConfigError, match="the text: not the same"):
        events(model, text, out)
    assert len(parts(out)) == kept


def test_a_run_may_be_resumed_with_other_batches(model, text, out, monkeypatch):
    stop_after(5, model, text, out, monkeypatch)
    elmo = bilmo.load(model, lang="spaces", batch_tokens=7)
    first, *_ = job.run(elmo, Inputs((str(text),)), out, EmbedSettings(lang="spaces"))
    assert first.done_parts
    assert_same(read(out), bilmo.load(model).layers([line.split() for line in text.read_text("utf-8").split("\n")]))


def test_a_disk_that_is_too_small_is_refused_before_anything_is_computed(model, text, out, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=100_000))
    with pytest.raises(
        OutputError, match=r"v\.h5: the file will take about 0\.\d MB, and the same again .* only 0\.1 MB is free"
    ):
        events(model, text, out)
    assert list(out.parent.iterdir()) == []
    assert events(model, text, out, mix="mean", pool="mean", dtype="float16")


def test_a_full_disk_keeps_finished_parts(model, text, out, monkeypatch):
    monkeypatch.setattr(job, "PART_TOKENS", 60)
    usual = Parts.new

    def full(self, *given):
        if len(self.files) == 3:
            raise OutputError("No space left on device")
        return usual(self, *given)

    with monkeypatch.context() as patch, pytest.raises(OutputError, match="No space left"):
        patch.setattr(Parts, "new", full)
        events(model, text, out)
    assert len(parts(out)) == 3
    assert events(model, text, out)[0].done_parts == 3
    assert len(read(out)) == LINES


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("file.txt/v.npy", "file.txt/v.npy: cannot be written: file.txt is not a folder"),
        ("/proc/self/v.npy", "/proc/self/v.npy: cannot be written: the folder /proc/self cannot hold new files"),
        ("/proc/nothing/v.npy", "/proc/nothing/v.npy: the folder /proc/nothing does not exist"),
    ],
)
def test_a_place_that_cannot_hold_files_is_an_error_and_not_an_endless_loop(model, text, place, says, monkeypatch):
    if not Path("/proc/self").is_dir():
        pytest.skip("there is no /proc")
    monkeypatch.chdir(text.parent)
    Path("file.txt").write_text("x")
    with pytest.raises(OutputError, match=says):
        events(model, text, Path(place))


def test_parts_of_the_version_before_are_refused_by_name(model, text, out, monkeypatch):
    """Its run.json had the settings themselves and no format number."""
    stop_after(5, model, text, out, monkeypatch)
    (folder_of(out) / "run.json").write_text('{"mix": "all", "pool": "none", "bilmo": "0.1.0"}')
    with pytest.raises(OutputError, match=r"v\.h5: was started by another version of bilmo .*remove .*v\.h5\.parts"):
        events(model, text, out)
    assert parts(out)


# A text that changes, and parts that are lost, while a run is stopped or at work

CHANGES = {
    "a later line is changed": lambda lines: [*lines[:-1], "other words"],
    "an earlier line is changed": lambda lines: ["other words", *lines[1:]],
    "cut off": lambda lines: lines[: LINES // 2],
    "cut off within a line": lambda lines: [*lines[:-2], "cut"],
    "appended to": lambda lines: [*lines, "one more line"],
    "emptied": lambda lines: [],
    "two lines are swapped": lambda lines: [*lines[:-3], lines[-1], lines[-2], lines[-3]],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("steps", [1, 4])
def test_a_text_that_changes_during_the_run_is_refused_and_nothing_is_published(
    model, text, out, monkeypatch, change, steps
):
    monkeypatch.setattr(job, "PART_TOKENS", 60)
    whole = text.read_text(encoding="utf-8")
    run = job.run(bilmo.load(model, lang="spaces"), Inputs((str(text),)), out, EmbedSettings(lang="spaces"))
    for _ in range(steps):
        next(run)
    text.write_text("\n".join(CHANGES[change](whole.split("\n"))), encoding="utf-8")
    with pytest.raises(
        TextError, match=r"text\.txt: changed while it was being embedded, so nothing was written"
    ) as error:
        list(run)
    left = [path.name for path in out.parent.iterdir()]
    if "remove" in str(error.value):
        assert str(folder_of(out)) in str(error.value) and left == [folder_of(out).name]
        with pytest.raises(ConfigError, match="the text: not the same"):
            events(model, text, out)
    else:
        assert left == []
    text.write_text(whole, encoding="utf-8")  # the parts that were computed from another text are computed again
    events(model, text, out)
    found = read(out)
    out.unlink()
    events(model, text, out)
    assert_same(found, read(out))


@pytest.mark.parametrize("change", ["appended to", "an earlier line is changed"])
def test_a_text_beside_standard_input_that_changes_during_the_run_is_refused(model, text, out, monkeypatch, change):
    piped = "one line from a pipe\n" * 20
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(piped.encode())))
    monkeypatch.setattr(job, "PART_TOKENS", 60)
    lines = text.read_text(encoding="utf-8").split("\n")
    run = job.run(bilmo.load(model, lang="spaces"), Inputs((str(text), "-")), out, EmbedSettings(lang="spaces"))
    for _ in range(4):
        next(run)
    text.write_text("\n".join(CHANGES[change](lines)), encoding="utf-8")
    with pytest.raises(
        TextError, match=r"^[^,]*text\.txt: changed while it was being embedded, so nothing was written"
    ):
        list(run)
    assert list(out.parent.iterdir()) == []


def test_a_text_that_changes_and_changes_back_is_refused_or_right(model, text, out, monkeypatch):
    """The part that is computed from another text does not fit the text any more."""
    monkeypatch.setattr(job, "PART_TOKENS", 60)
    whole = text.read_text(encoding="utf-8")
    usual, calls = Inputs.items, []

    def changing(self):
        calls.append(1)
        for number, item in enumerate(usual(self)):
            yield "other words" if len(calls) == 2 and number == LINES // 2 else item

    monkeypatch.setattr(Inputs, "items", changing)
    with pytest.raises(TextError, match="changed while it was being embedded"):
        events(model, text, out)
    computed = len(parts(out))
    first, *_ = events(model, text, out)
    assert 0 < first.done_parts < computed
    expected = bilmo.load(model).layers([line.split() for line in whole.split("\n")])
    assert_same(read(out), expected)


@pytest.mark.parametrize("lost", ["first", "middle", "last", "damaged", "two exchanged"])
@pytest.mark.parametrize("start", ["settled", "carry"])
def test_parts_that_are_lost_or_damaged_are_computed_again(model, text, out, monkeypatch, lost, start):
    monkeypatch.setattr(job, "PART_TOKENS", 60)
    elmo = bilmo.load(model, lang="spaces", start=start)
    run = lambda: job.run(elmo, Inputs((str(text),)), out, EmbedSettings(lang="spaces"))  # noqa: E731
    list(run())
    expected = read(out)
    out.unlink()
    elmo.reset()
    stopped = run()
    for _ in range(40 if start == "carry" else 8):
        next(stopped)
    stopped.close()
    elmo.reset()
    kept = parts(out)
    assert len(kept) >= 3
    if lost == "two exchanged":
        contents = [part.read_bytes() for part in kept]
        kept[0].write_bytes(contents[1])
        kept[1].write_bytes(contents[0])
    elif lost == "damaged":
        content = kept[1].read_bytes()
        kept[1].write_bytes(content[:200] + bytes([content[200] ^ 1]) + content[201:])
    else:
        kept[{"first": 0, "middle": 1, "last": -1}[lost]].unlink()
    list(run())
    assert_same(read(out), expected)
    assert not folder_of(out).exists()

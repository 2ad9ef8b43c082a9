"""Several processes give the bytes of one, whatever is killed; they share the model, and none outlives the first."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bilmo
from bilmo.embed import job
from bilmo.embed.embedder import Embedder
from bilmo.embed.inputs import Inputs
from bilmo.embed.job import EmbedSettings, Finished, Started, Step
from bilmo.embed.loaded import settled
from bilmo.embed.options import check_workers
from bilmo.embed.output.parts import folder_of
from bilmo.errors import BilmoError, ConfigError, OutputError
from bilmo.formats import open as layouts
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.store.atomic import TEMPORARY
from bilmo.store.bundle import Bundle
from bilmo.workers import Workers

from old_models import write_hdf5

LINES = 120
pytestmark = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workers")
    write_hdf5(folder / "old", seed=1)
    layouts.write(settled(layouts.read(folder / "old")), folder / "model", "bilmo")
    return folder / "model"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    chosen = random.Random(1)
    lines = (
        " ".join(chosen.choices(["the", "cat", "naïve", "漢字", ".", "\U0001f600"], k=chosen.randrange(9)))
        for _ in range(LINES)
    )
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path / "text.txt"


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(job, "PART_TOKENS", 40)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as workers do; more threads may round differently
    yield
    torch.set_num_threads(threads)


def started(model: Path, text: Path, out: Path, number: int, **settings: Any) -> tuple[Any, Any]:
    """The workers of a run, and its events."""
    elmo = bilmo.load(model)
    how = EmbedSettings(model=model.name, lang=elmo.lang, **settings)  # as embed_files has them
    workers = job.start_workers(elmo, how, number)
    return workers, job.run(elmo, Inputs((str(text),)), out, how, workers=workers)


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


# The same bytes


@pytest.mark.parametrize("name", ["v.npz", "v.jsonl", "v.h5"])
@pytest.mark.parametrize("number", [2, 5])
def test_the_file_is_that_of_one_process(model, text, tmp_path, name, number):
    files = []
    for workers in (1, number):
        (tmp_path / str(workers)).mkdir()
        files.append(tmp_path / str(workers) / name)
        found = bilmo.embed_files(model, text, files[-1], workers=workers)
        assert found == Finished(LINES, found.tokens, [], "auto")
    assert files[0].read_bytes() == files[1].read_bytes()


def test_texts_of_every_form_stay_in_order(model, tmp_path):
    (tmp_path / "a.txt").write_text("One.\n\n\nTwo words." + " long" * 500)
    (tmp_path / "b.txt").write_text("\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace") + "\n漢字")
    (tmp_path / "empty.txt").write_text("")
    files = [tmp_path / name for name in ("a.txt", "empty.txt", "b.txt")]
    one = bilmo.embed_files(model, files, tmp_path / "one.npz")
    assert bilmo.embed_files(model, files, tmp_path / "two.npz", workers=2) == one
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def test_events_add_up(model, text, tmp_path):
    first, *steps, last = bilmo.embed_files(model, text, tmp_path / "v.npz", workers=3, events=True)
    assert isinstance(first, Started) and first.done_parts == 0
    assert all(isinstance(step, Step) for step in steps)
    assert sum(step.sentences for step in steps) == last.sentences == LINES
    assert sum(step.tokens for step in steps) == last.tokens
    assert sum(step.characters for step in steps) == first.characters


def test_a_file_of_words_is_that_of_one_process(model, tmp_path, monkeypatch):
    monkeypatch.setattr("bilmo.api.embed.BATCH_WORDS", 3)
    (tmp_path / "words.txt").write_text(" ".join(f"word{number}" for number in range(31)))
    for workers in (1, 2):
        assert bilmo.word_cache(model, tmp_path / "words.txt", tmp_path / str(workers), workers=workers) == 33
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


@pytest.fixture(scope="module")
def larger() -> Bundle:
    """Large enough that products are computed by other code if they have one row, and that memory can be measured."""
    torch.manual_seed(0)
    config = bilmo.BiLMConfig(words=WordsConfig(chars=CharsConfig(highways=1)), cell=CellConfig(cells=2048), width=256)
    return Bundle(config, bilmo.BiLM(config).state_dict(), layout="random")


def test_the_vector_of_a_word_does_not_depend_on_which_words_were_known(larger):
    words = [f"{letter}{'x' * number}" for number in range(4) for letter in "abcdefgh"]
    together = Embedder(larger, start="zero").word_vectors(words)
    alone = Embedder(larger, start="zero")
    assert np.array_equal(np.concatenate([alone.word_vectors([word]) for word in words]), together)


# One copy of the model


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs /proc/PID/smaps_rollup")
def test_workers_share_weights_and_packed_weights(larger):
    elmo = Embedder(larger, start="zero")
    size = sum(value.nbytes for value in larger.weights.values())
    rows = [[["the", "cat", "sat"]]] * 8

    def work(_: int) -> Iterator[int]:
        elmo.embed_rows(rows)
        numbers = (line.split() for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
        yield sum(1024 * int(value) for name, value, _ in numbers if name.startswith("Private"))

    with Workers(2, work) as workers:
        for _, private in workers.run(range(4)):
            assert private < size / 2


# Killed and resumed


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_a_run_killed_anywhere_is_resumed_by_any_number_of_workers(model, text, tmp_path):
    bilmo.embed_files(model, text, tmp_path / "whole.npz")
    out, pids, chosen = tmp_path / "v.npz", tmp_path / "pids", random.Random(5)
    kept: set[str] = set()
    for number in (2, 3, 1, 2):
        child = os.fork()
        if not child:
            try:
                workers, events = started(model, text, out, number, mix="mean")
                pids.write_text(" ".join(str(process.pid) for process in workers._processes))
                for event in events:
                    time.sleep(0 if isinstance(event, Started) else 0.01)
            finally:
                os._exit(0)
        time.sleep(chosen.uniform(0.05, 0.4))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if out.exists():
            break
        finished = {path.name for path in folder_of(out).glob("*.part")}
        assert finished >= kept  # nothing that was finished is lost
        kept = finished
    ends = time.monotonic() + 20
    while any(is_running(int(pid)) for pid in pids.read_text().split()):
        assert time.monotonic() < ends, "a worker outlives the process that started it"
        time.sleep(0.01)
    if not out.exists():
        first, *_ = bilmo.embed_files(model, text, out, workers=2, events=True)
        assert first.done_parts == len(kept)
    assert out.read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_a_worker_that_is_killed_is_an_error_and_its_part_is_computed_again(model, text, tmp_path):
    out = tmp_path / "v.npz"
    workers, events = started(model, text, out, 2, mix="mean")
    next(events)
    while not list(folder_of(out).glob("*.part")):
        next(events)
    os.kill(workers._processes[0].pid, signal.SIGKILL)
    with pytest.raises(BilmoError, match=r"a worker process ended by signal 9.*Run the same command again"):
        list(events)
    first, *_ = bilmo.embed_files(model, text, out, workers=2, events=True)
    assert first.done_parts > 0
    bilmo.embed_files(model, text, tmp_path / "whole.npz")
    assert out.read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_only_parts_that_are_missing_are_computed(model, text, tmp_path, monkeypatch):
    out = tmp_path / "v.npz"
    events: Any = bilmo.embed_files(model, text, out, events=True)
    while len(parts := sorted(folder_of(out).glob("*.part"))) < 5:
        next(events)
    events.close()
    parts[0].unlink()
    parts[2].unlink()
    computed, usual = [], Embedder.embed_rows

    def counted(self, rows, **settings):
        computed.extend(rows)
        return usual(self, rows, **settings)

    monkeypatch.setattr(Embedder, "embed_rows", counted)
    first, *_, last = bilmo.embed_files(model, text, out, events=True)
    assert (first.done_parts, last.sentences) == (3, LINES)
    assert len(computed) == LINES - first.done_sentences
    bilmo.embed_files(model, text, tmp_path / "whole.npz")
    assert out.read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_a_run_that_is_stopped_stops_its_workers_and_leaves_nothing_half_written(model, text, tmp_path):
    out = tmp_path / "v.npz"
    workers, events = started(model, text, out, 3, mix="mean")
    processes = list(workers._processes)
    next(events), next(events)
    events.close()  # as KeyboardInterrupt does
    assert all(process.exitcode is not None for process in processes)
    assert not [path for path in tmp_path.rglob("*") if TEMPORARY.fullmatch(path.name)]


# Errors


def test_an_error_in_a_worker_is_that_of_one_process(model, text, tmp_path, monkeypatch):
    out = tmp_path / "v.npz"

    def full(*_: object, **__: object) -> None:
        raise OutputError("No space left on device")

    monkeypatch.setattr(Embedder, "embed_rows", full)
    with pytest.raises(OutputError, match=r"^No space left on device$"):
        bilmo.embed_files(model, text, out, workers=2)
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_an_error_of_bilmo_itself_has_the_traceback_of_the_worker():
    def work(number: int) -> Iterator[int]:
        yield number
        raise LookupError("number", number)

    with Workers(1, work) as workers:
        results = workers.run([1])
        assert next(results) == (1, 1)
        with pytest.raises(RuntimeError, match=r"(?s)in a worker process:.*in work.*LookupError: \('number', 1\)"):
            next(results)


def test_every_task_is_computed_once():
    with Workers(3, lambda number: iter([number, -number])) as workers:
        found = list(workers.run(range(20)))
        assert sorted(task for task, _ in found) == sorted([*range(20)] * 2)
        assert all([result for one, result in found if one == task] == [task, -task] for task in range(20))
        assert list(workers.run([])) == []


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"workers": 0}, "workers is 0; it must be 1 or more"),
        ({"workers": 2, "start": "carry"}, "start='carry' reads the text in order.*Use workers=1"),
    ],
)
def test_what_several_workers_cannot_do_is_refused_before_the_model_is_read(text, tmp_path, settings, says):
    with pytest.raises(ConfigError, match=says):
        bilmo.embed_files(text, text, tmp_path / "v.npz", **settings)


def test_several_workers_need_the_cpu(monkeypatch):
    monkeypatch.setattr("bilmo.embed.options.device_of", torch.device)
    with pytest.raises(ConfigError, match="several workers compute on the CPU; found device cuda"):
        check_workers(2, start="settled", device="cuda")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["text.txt", "-o", "v.npz", "--threads", "2"], "use --workers or --threads"),
        (["text.txt"], "--workers needs --output, the file of vectors to write"),
    ],
)
def test_the_command_refuses_what_has_no_meaning(model, text, monkeypatch, capsys, arguments, says):
    from bilmo.cli.app import main

    monkeypatch.chdir(text.parent)
    monkeypatch.setattr(sys, "argv", ["bilmo", "embed", str(model), *arguments, "--workers", "2"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    assert says in capsys.readouterr().err

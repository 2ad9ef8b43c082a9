"""Indexes built by several processes: the bytes are those of one process, whatever is killed."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import bilmo
from bilmo.embed.embedder import Embedder
from bilmo.errors import BilmoError, ConfigError, OutputError
from bilmo.sense import index_parts
from bilmo.sense.index import Index, index_events
from bilmo.sense.index_parts import Cut, Step
from bilmo.sense.index_run import Finished, Started
from bilmo.store.atomic import TEMPORARY

from task_data import made

pytestmark = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
LINES = 90


@pytest.fixture
def texts(tmp_path: Path) -> tuple[Path, Path]:
    draw = random.Random(1)
    words = ["the", "cat", "naïve", "漢字", ".", "\U0001f600", "Bank"]
    for name, number in (("first.txt", LINES), ("second.txt", 40)):
        lines = (" ".join(draw.choices(words, k=draw.randrange(9))) for _ in range(number))
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    return tmp_path / "first.txt", tmp_path / "second.txt"


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(index_parts, "PART_WORDS", 30)
    monkeypatch.setattr(index_parts, "BATCH_SENTENCES", 3)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as workers do; more threads may round differently
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def elmo() -> Embedder:
    return Embedder(made(0), lang="spaces")


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def part_files(output: Path) -> list[Path]:
    return sorted(output.with_name(f".{output.name}.index").glob(index_parts.FILES))


@pytest.mark.parametrize(("number", "dtype"), [(2, "float16"), (5, "int8")])
def test_the_index_is_that_of_one_process(texts, elmo, tmp_path, number, dtype):
    for workers in (1, number):
        index = Index.build(elmo, texts[0], tmp_path / str(workers), dtype=dtype, workers=workers)
        index.add(elmo, texts[1], workers=workers)
    assert content(tmp_path / "1") == content(tmp_path / str(number))
    assert {path.name for path in tmp_path.iterdir()} == {"first.txt", "second.txt", "1", str(number)}


def test_events_add_up(texts, elmo, tmp_path):
    first, *steps, last = index_events(elmo, texts[0], tmp_path / "uses", workers=3)
    assert isinstance(first, Started) and first.done_characters == 0 and isinstance(last, Finished)
    assert sum(step.characters for step in steps if isinstance(step, Step)) <= first.characters
    words = sum(len(line.split()) for line in texts[0].read_text(encoding="utf-8").splitlines())
    assert sum(step.words for step in steps if isinstance(step, Step)) == words


def stopped_with_later_parts(text: Path, elmo: Embedder, output: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The parts that are kept by a run whose first part fails after others are complete."""
    usual = index_parts._write_part

    def late(*given: Any) -> Iterator[Step | Path]:
        if (cut := given[-1]).file.name.startswith("0-"):
            while len(part_files(output)) < 3:
                time.sleep(0.01)
            raise OutputError("the first part fails")
        assert isinstance(cut, Cut)
        yield from usual(*given)

    with monkeypatch.context() as patch:
        patch.setattr(index_parts, "_write_part", late)
        with pytest.raises(OutputError, match="the first part fails"):
            list(index_events(elmo, text, output, workers=2))
    kept = part_files(output)
    assert len(kept) >= 3 and not output.exists()
    return kept


def test_parts_finished_out_of_order_are_used_by_the_next_run(texts, elmo, tmp_path, monkeypatch):
    output = tmp_path / "uses"
    kept = stopped_with_later_parts(texts[0], elmo, output, monkeypatch)
    first, *steps = index_events(elmo, texts[0], output)
    waiting = sum(int(path.name.split("-")[1]) for path in kept)
    assert isinstance(first, Started) and first.done_characters == waiting > 0
    assert sum(step.characters for step in steps if isinstance(step, Step)) == first.characters - waiting
    Index.build(elmo, texts[0], tmp_path / "whole")
    assert content(output) == content(tmp_path / "whole")


@pytest.mark.parametrize("workers", [1, 2])
def test_damaged_parts_are_computed_again(texts, elmo, tmp_path, monkeypatch, workers):
    output = tmp_path / "uses"
    flipped, shortened, *_ = stopped_with_later_parts(texts[0], elmo, output, monkeypatch)
    flipped.write_bytes(bytes([flipped.read_bytes()[0] ^ 1]) + flipped.read_bytes()[1:])
    shortened.write_bytes(shortened.read_bytes()[:-100])
    Index.build(elmo, texts[0], output, workers=workers)
    Index.build(elmo, texts[0], tmp_path / "whole")
    assert content(output) == content(tmp_path / "whole")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_a_run_killed_at_random_points_is_resumed_by_any_number_of_workers(texts, elmo, tmp_path):
    Index.build(elmo, texts[0], tmp_path / "whole")
    output, chosen = tmp_path / "uses", random.Random(3)
    killed = 0
    for number in (2, 3, 1, 2, 2, 1, 3, 2, 2, 1):
        child = os.fork()
        if not child:
            try:
                torch.set_num_threads(1)
                for _ in index_events(elmo, texts[0], output, workers=number):
                    time.sleep(0.02)
            finally:
                os._exit(0)
        time.sleep(chosen.uniform(0.02, 0.35))
        os.kill(child, signal.SIGKILL)
        killed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        if output.exists():
            break
    assert killed
    for _ in range(2):  # a worker that has not noticed yet that its parent is gone does no harm
        if not output.exists() or output.with_name(".uses.index").exists():
            list(index_events(elmo, texts[0], output, workers=2))
    assert content(output) == content(tmp_path / "whole")
    assert not output.with_name(".uses.index").exists()


def test_a_worker_that_is_killed_is_an_error_and_the_run_is_resumed(texts, elmo, tmp_path):
    events = index_events(elmo, texts[0], tmp_path / "uses", workers=2)
    assert [type(next(events)).__name__ for _ in range(2)] == ["Started", "Step"]
    for process in multiprocessing.active_children():
        os.kill(process.pid or 0, signal.SIGKILL)
    with pytest.raises(BilmoError, match=r"a worker process ended by signal 9.*Run the same command again"):
        list(events)
    Index.build(elmo, texts[0], tmp_path / "uses", workers=2)
    Index.build(elmo, texts[0], tmp_path / "whole")
    assert content(tmp_path / "uses") == content(tmp_path / "whole")


def test_a_run_that_is_stopped_stops_its_workers_and_leaves_nothing_half_written(texts, elmo, tmp_path):
    events = index_events(elmo, texts[0], tmp_path / "uses", workers=3)
    next(events), next(events)
    assert len(multiprocessing.active_children()) == 3
    events.close()  # as KeyboardInterrupt does
    assert not multiprocessing.active_children()
    assert not [path for path in tmp_path.rglob("*") if TEMPORARY.fullmatch(path.name)]


def test_what_several_workers_cannot_do_is_refused_before_the_model_is_read(texts, tmp_path):
    for settings, says in (({"workers": 0}, "workers is 0"), ({"workers": 2, "start": "carry"}, "needs one worker")):
        with pytest.raises(ConfigError, match=says):
            bilmo.Index.build(texts[0], texts[0], tmp_path / "uses", **settings)


def test_the_command(run, model, texts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for workers in (1, 2):
        found = run("index", "model", "first.txt", "-o", "uses", "--workers", workers)
        assert found.code == 0 and found.out.startswith("uses: "), found
        Path("uses").rename(f"uses{workers}")
    assert content(tmp_path / "uses1") == content(tmp_path / "uses2")
    found = run("index", "model", "first.txt", "-o", "uses", "--workers", 2, "--threads", 2)
    assert found.code == 1 and "use --workers or --threads" in found.err, found

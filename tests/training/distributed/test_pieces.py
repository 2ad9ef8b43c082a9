"""Text that is split by several processes gives the corpus of one, byte for byte, and leaves no process behind."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bilmo.errors import ConfigError, TextError
from bilmo.training.corpus import build
from bilmo.training.distributed import pieces
from bilmo.training.distributed.pieces import one_process, processes
from bilmo.workers import Workers
from program import program
from small_runs import write_text

LINES = [f"word{n % 17} word{n % 5} <UNK> number {n} ." for n in range(400)]


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@settings(max_examples=10)
@given(
    st.lists(st.lists(st.text("aB.'字<", min_size=1, max_size=3), max_size=6), min_size=3, max_size=30),
    st.integers(1, 60),
    st.sampled_from([None, 4, 9]),
)
def test_the_corpus_does_not_depend_on_pieces_and_processes(tmp_path_factory, rows, size, most):
    lines = [*map(" ".join, rows), "held out", "one more", "and another"]
    folder, found = tmp_path_factory.mktemp("corpus"), []
    with pytest.MonkeyPatch.context() as patch:
        for name, mapped in enumerate((one_process, one_process, processes(2), processes(3))):
            try:
                build(lines, "en", folder / str(name), held_out=0.4, seed=3, max_words=most, mapped=mapped)
                found.append(content(folder / str(name)))
            except TextError as error:
                found.append(str(error))
            patch.setattr(pieces, "PIECE", size)
    assert found[1:] == found[:1] * 3


def test_results_keep_the_order_of_tasks_and_few_tasks_are_read_ahead():
    taken = 0

    def tasks():
        nonlocal taken
        while taken < 20:
            taken += 1
            yield taken

    def slow_at_first(task):
        time.sleep(0.2 if task < 3 else 0)
        yield -task

    with Workers(3, slow_at_first) as workers:
        for number, result in enumerate(workers.map(tasks()), start=1):
            assert result == -number
            assert taken - number <= 3
        assert number == 20
        assert list(workers.map([])) == []


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_no_process_outlives_one_that_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 100)

    def killed():
        yield from LINES
        (tmp_path / "pids").write_text(" ".join(str(worker.pid) for worker in multiprocessing.active_children()))
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        build(killed(), "spaces", tmp_path / "c", held_out=0.2, seed=1, mapped=processes(3))
        os._exit(0)
    os.waitpid(child, 0)
    pids, ends = (tmp_path / "pids").read_text().split(), time.monotonic() + 20
    assert len(pids) == 3
    while any(map(is_running, pids)):
        assert time.monotonic() < ends, "a worker outlives the process that started it"
        time.sleep(0.01)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt, TextError])
def test_a_run_that_ends_while_it_reads_leaves_nothing(tmp_path, monkeypatch, error):
    monkeypatch.setattr(pieces, "PIECE", 100)

    def ended():
        yield from LINES
        raise error("stop")

    with pytest.raises(error):
        build(ended(), "spaces", tmp_path / "c", held_out=0.2, seed=1, mapped=processes(2))
    assert not multiprocessing.active_children()
    assert not list(tmp_path.iterdir())


def test_bilmo_train_gives_the_same_model_with_workers(tmp_path):
    write_text(tmp_path)
    command = ("train", "text.txt", "--recipe", "recipe.toml", "--epochs", 1)
    assert program(tmp_path, *command, "-o", "one").code == 0
    assert program(tmp_path, *command, "-o", "two", "--workers", 2, "--threads", 1).code == 0
    assert (tmp_path / "one" / "vocab.txt").read_bytes() == (tmp_path / "two" / "vocab.txt").read_bytes()
    corpora = (tmp_path / name / "training" / "corpus" for name in ("one", "two"))
    assert content(next(corpora)) == content(next(corpora))
    refused = program(tmp_path, *command, "-o", "three", "--workers", 2, "--ray", "auto")
    assert refused.code == 1 and "--workers on this machine; use one of them" in refused.err
    with pytest.raises(ConfigError, match="workers is 0; it must be 1 or more"):
        processes(0)


def test_a_worker_that_is_killed_is_an_error_and_the_same_command_starts_again(tmp_path):
    write_text(tmp_path)
    command = ("train", "text.txt", "--recipe", "recipe.toml", "--epochs", 1, "-o", "model", "--workers", 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bilmo.training.corpus.split_piece", lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
        done = program(tmp_path, *command)
    assert done.code == 1 and "a worker process ended by signal 9" in done.err
    assert program(tmp_path, *command).code == 0

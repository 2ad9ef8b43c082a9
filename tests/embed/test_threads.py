"""One Embedder used by many threads at once, by asyncio, and after a fork."""

import asyncio
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import bilmo
import bilmo.embed.word_cache
from bilmo.embed.embedder import Embedder
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.net.kernels.threads import caller_threads, side_by_side
from bilmo.store.bundle import Bundle
from small_runs import threads

RANDOM = np.random.default_rng(0)
WORDS = ["".join(RANDOM.choice(list("abcdefghij"), RANDOM.integers(1, 9))) for _ in range(400)]
CALLS = [[[WORDS[n] for n in RANDOM.integers(0, 400, RANDOM.integers(1, 15))] for _ in range(20)] for _ in range(16)]
LONG = 600
"""Seconds to wait for another thread. A wait without a limit would block a pool even after pytest's own time limit."""


def same(found, expected):
    return all(
        a.shape == b.shape and np.abs(a - b).max(initial=0) <= 1e-6 for a, b in zip(found, expected, strict=True)
    )


@pytest.fixture(scope="module")
def bundle():
    torch.manual_seed(0)
    words = WordsConfig(chars=CharsConfig(width=4, filters=((1, 16), (2, 16)), highways=1))
    config = bilmo.BiLMConfig(words=words, cell=CellConfig(cells=64), width=32)
    return Bundle(config, bilmo.BiLM(config).state_dict(), layout="test")


@pytest.fixture(scope="module")
def expected(bundle):
    elmo = Embedder(bundle)
    return [elmo.layers(call) for call in CALLS]


@pytest.mark.parametrize("callers", [2, 8])
@pytest.mark.parametrize("cache", [4000, 1 << 26], ids=["small cache", "large cache"])
def test_threads_on_one_fresh_embedder_get_the_vectors_of_one_thread(bundle, expected, monkeypatch, callers, cache):
    monkeypatch.setattr(bilmo.embed.word_cache, "CACHE_BYTES", cache)
    with threads(2), ThreadPoolExecutor(callers) as pool:
        for _ in range(5):
            elmo = Embedder(bundle)
            for found, vectors in zip(pool.map(elmo.layers, CALLS), expected, strict=True):
                assert same(found, vectors)
            assert all(same(elmo.layers(call), vectors) for call, vectors in zip(CALLS, expected, strict=True))


def test_words_that_are_encoded_meanwhile_by_another_thread_are_kept_once(bundle, expected):
    elmo = Embedder(bundle)
    plain, both = elmo._runner.words._encoder, threading.Barrier(2)

    def together(words):
        both.wait(LONG)  # neither thread has stored a word when the other looks for it
        return plain(words)

    elmo._runner.words._encoder = together
    with threads(1), ThreadPoolExecutor(2) as pool:
        found = list(pool.map(elmo.layers, [CALLS[0], CALLS[0]]))
    assert same(found[0], expected[0]) and same(found[1], expected[0])
    elmo._runner.words._encoder = plain
    assert same(elmo.layers(CALLS[0]), expected[0])
    distinct = {word for sentence in CALLS[0] for word in sentence}
    assert len(elmo._runner.words._rows) == len(distinct) + 2
    assert sorted(elmo._runner.words._rows.values()) == list(range(len(distinct) + 2))


def test_tasks_of_asyncio_get_the_vectors_of_one_thread(bundle, expected):
    elmo = Embedder(bundle)

    async def all_calls():
        return await asyncio.gather(*(asyncio.to_thread(elmo.layers, call) for call in CALLS))

    assert all(same(found, vectors) for found, vectors in zip(asyncio.run(all_calls()), expected, strict=True))


def test_many_callers_leave_the_number_of_threads_as_it_was(bundle):
    elmo = Embedder(bundle)
    with threads(2):

        def call(sentences):
            elmo.layers(sentences)
            return torch.get_num_threads()

        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(call, CALLS * 3)) == {2}
        assert torch.get_num_threads() == 2
        with ThreadPoolExecutor(1) as fresh:
            assert fresh.submit(torch.get_num_threads).result() == 2


def test_a_second_caller_has_the_threads_that_the_user_set_not_those_of_the_first():
    entered, left = threading.Event(), threading.Event()

    def second():
        entered.wait(LONG)
        with caller_threads(1):
            found = side_by_side([torch.get_num_threads, torch.get_num_threads])
        left.set()
        return found, torch.get_num_threads()

    with threads(4), ThreadPoolExecutor(1) as pool:
        answer = pool.submit(second)
        with caller_threads(1):
            entered.set()
            assert left.wait(LONG)
        assert answer.result() == ([2, 2], 4)
        assert torch.get_num_threads() == 4


FORK = """
import os, pickle, sys
import numpy as np, torch
import bilmo

torch.set_num_threads(4)
bundle, text = pickle.load(open(sys.argv[1], "rb"))
elmo = bilmo.Embedder(bundle)
expected = [elmo.layers(call) for call in text]
large = torch.randn(1000, 1000).exp() @ torch.randn(1000, 1000)  # OpenMP has threads now
codes = []
for _ in range(5):
    child = os.fork()
    if child == 0:
        fresh = bilmo.Embedder(bundle)
        same = all(
            np.abs(a - b).max(initial=0) <= 1e-6
            for one in (elmo, fresh)
            for call, vectors in zip(text, expected)
            for a, b in zip(one.layers(call), vectors)
        )
        torch.randn(1000, 1000).exp()  # in a process that waits for threads of its parent this hangs
        os._exit(0 if same else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(codes)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_embeds_as_its_parent_does(bundle, tmp_path):
    (tmp_path / "given").write_bytes(pickle.dumps((bundle, CALLS[:3])))
    command = [sys.executable, "-c", FORK, str(tmp_path / "given")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "[0, 0, 0, 0, 0]\n", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_waits_for_a_thread_that_changes_a_cache_and_leaves_no_lock_behind():
    held, release = threading.Event(), threading.Event()

    def hold():
        with bilmo.embed.word_cache._lock:
            held.set()
            release.wait(0.3)  # the fork begins meanwhile; if it begins later, the lock is free, and the test passes

    other = threading.Thread(target=hold)
    other.start()
    assert held.wait(LONG)
    child = os.fork()
    if child == 0:
        os._exit(0 if bilmo.embed.word_cache._lock.acquire(blocking=False) else 1)
    release.set()
    other.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not bilmo.embed.word_cache._lock.locked()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_parent_of_a_forked_process_goes_on_as_before(bundle, expected):
    elmo = Embedder(bundle)
    with threads(2):
        elmo.layers(CALLS[0])
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        assert torch.get_num_threads() == 2
        assert same(elmo.layers(CALLS[1]), expected[1])

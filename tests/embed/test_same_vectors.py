"""At a published shape: how sentences are grouped, cached and computed changes no vector."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bilmo
import bilmo.embed.word_cache
from bilmo.embed.embedder import Embedder
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.net.kernels.threads import caller_threads, side_by_side
from bilmo.store.bundle import Bundle

HAS_INT8 = "fbgemm" in torch.backends.quantized.supported_engines
ALLOWED = {"float32": 1e-5, "int8": 1e-3}
"""Of the largest value of the layer."""

RANDOM = np.random.default_rng(1)
LETTERS = list("abcdefghijklmnopqrstuvwxyzéß字")
WORDS = ["".join(RANDOM.choice(LETTERS, RANDOM.integers(1, 12))) for _ in range(300)]
TEXT = [[WORDS[n] for n in RANDOM.integers(0, 300, length)] for length in (*RANDOM.integers(1, 30, 24), 0, 60)]


@pytest.fixture(scope="module")
def bundle():
    torch.manual_seed(0)
    config = bilmo.BiLMConfig(words=WordsConfig(chars=CharsConfig(highways=1)), cell=CellConfig(cells=1024), width=128)
    return Bundle(config, bilmo.BiLM(config).state_dict(), layout="random")


@pytest.fixture(scope="module", params=["float32", pytest.param("int8", marks=pytest.mark.skipif(
    not HAS_INT8, reason="this torch does not multiply in eight bits here"))])  # fmt: skip
def elmo(request, bundle):
    return Embedder(bundle, start="zero", precision=request.param)


@pytest.fixture(scope="module")
def expected(elmo):
    return elmo.layers(TEXT)


def assert_same(elmo, found, expected):
    for layer in range(3):
        largest = max(np.abs(values[layer]).max(initial=0) for values in expected)
        for a, b in zip(found, expected, strict=True):
            assert a.shape == b.shape
            assert np.abs(a[layer] - b[layer]).max(initial=0) <= ALLOWED[elmo.precision] * largest


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_order_batch_cache_and_threads_change_no_vector(bundle, elmo, expected, data):
    order = data.draw(st.permutations(range(len(TEXT))))[: data.draw(st.integers(1, len(TEXT)))]
    threads = torch.get_num_threads()
    before = bilmo.embed.word_cache.CACHE_BYTES
    torch.set_num_threads(data.draw(st.sampled_from([1, 2, 3, 4])))
    bilmo.embed.word_cache.CACHE_BYTES = data.draw(st.sampled_from([600, 20_000, before]))
    try:
        batch = data.draw(st.sampled_from([1, 30, 100, 2048]))
        other = Embedder(bundle, start="zero", precision=elmo.precision, batch_tokens=batch)
        found = other.layers([TEXT[k] for k in order])
    finally:
        torch.set_num_threads(threads)
        bilmo.embed.word_cache.CACHE_BYTES = before
    assert_same(elmo, found, [expected[k] for k in order])


def test_a_sentence_alone_has_the_vectors_it_has_among_others(elmo, expected):
    alone = Embedder(elmo.bundle, start="zero", precision=elmo.precision)
    some = [0, 5, 11, 25]
    assert_same(elmo, [alone.layers([TEXT[k]])[0] for k in some], [expected[k] for k in some])


def test_eight_bits_stay_near(bundle, elmo, expected):
    if elmo.precision == "float32":
        pytest.skip("compares int8 with float32")
    exact = Embedder(bundle, start="zero").layers(TEXT)
    for a, b in zip(expected, exact, strict=True):
        cosine = (a * b).sum(-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))
        assert cosine.min(initial=1) > 0.999
        assert a.size == 0 or not np.array_equal(a, b)


@pytest.mark.parametrize("threads", [2, 4, 8])
def test_work_within_work_never_waits_for_itself(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        inner = [lambda: 1, lambda: 2]
        assert side_by_side([lambda: side_by_side(inner), lambda: side_by_side(inner)]) == [[1, 2], [1, 2]]
    finally:
        torch.set_num_threads(before)


def test_threads_are_spared_for_tasks_and_given_back():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        with caller_threads(1):
            assert torch.get_num_threads() == 1
            assert side_by_side([torch.get_num_threads, torch.get_num_threads]) == [2, 2]
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 4
        with pytest.raises(ZeroDivisionError), caller_threads(1):
            side_by_side([lambda: 1, lambda: 1 // 0])
        assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(before)

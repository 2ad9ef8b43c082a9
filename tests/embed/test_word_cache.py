import numpy as np
import pytest
import torch

import bilmo.embed.word_cache
from bilmo.embed.embedder import Embedder
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.net.kernels.threads import side_by_side
from bilmo.store.bundle import Bundle

TEXT = [["the", "cat", "saw", "the", "dog"], [], ["字"], ["the"] * 9, ["a", "b", "c", "d", "e", "f", "g"]]


@pytest.fixture(scope="module")
def bundle():
    torch.manual_seed(0)
    config = bilmo.BiLMConfig(
        words=WordsConfig(chars=CharsConfig(width=4, filters=((1, 8), (2, 8)), highways=1)),
        cell=CellConfig(cells=24),
        width=8,
    )
    return Bundle(config, bilmo.BiLM(config).state_dict(), layout="test")


def assert_same(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        assert np.abs(a - b).max(initial=0) <= 1e-5 * np.abs(b).max(initial=1e-9)


@pytest.mark.parametrize("words", [1, 2, 3, 7, 1000])
def test_the_size_of_the_cache_changes_no_vector(bundle, monkeypatch, words):
    expected = Embedder(bundle).layers(TEXT)
    monkeypatch.setattr(bilmo.embed.word_cache, "CACHE_BYTES", words * 4 * 8)
    elmo = Embedder(bundle)
    for _ in range(3):
        assert_same(elmo.layers(TEXT), expected)
    assert_same([elmo.layers([sentence])[0] for sentence in TEXT], expected)


def test_a_word_is_encoded_once(bundle, monkeypatch):
    elmo = Embedder(bundle)
    seen = []
    plain = elmo._runner.words._encoder
    monkeypatch.setattr(elmo._runner.words, "_encoder", lambda words: seen.append(len(words.chars)) or plain(words))
    elmo.layers(TEXT)
    first = sum(seen)
    elmo.layers(TEXT[::-1])
    assert sum(seen) == first == len({word for sentence in TEXT for word in sentence}) + 2


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_number_of_threads_changes_no_vector_and_stays_what_it_was(bundle, threads):
    expected = Embedder(bundle).layers(TEXT)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert_same(Embedder(bundle).layers(TEXT), expected)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def test_results_come_in_the_order_of_the_tasks_and_errors_come_through():
    assert side_by_side([lambda: 1, lambda: 2]) == [1, 2]
    with pytest.raises(ZeroDivisionError):
        side_by_side([lambda: 1, lambda: 1 // 0])


@pytest.mark.parametrize("mix, computed", [((0,), 0), ((0, 1), 1), ("mean", 2), ("top", 2), (1, 1)])
def test_layers_that_nobody_asked_for_are_not_computed(bundle, mix, computed):
    elmo = Embedder(bundle)
    expected = elmo.embed(TEXT, mix=mix)
    calls = []
    for direction in ("forward", "backward"):
        elmo._runner.network.stacks[direction] = [
            lambda *given, plain=plain, number=number: calls.append(number) or plain(*given)
            for number, plain in enumerate(elmo._runner.network.stacks[direction])
        ]
    assert_same(elmo.embed(TEXT, mix=mix), expected)
    assert set(calls) == set(range(computed))

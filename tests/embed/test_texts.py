"""Raw text in, tokens and vectors out; pooled, in half precision, as a stream: always what single sentences give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bilmo
from bilmo.embed.embedder import Embedder
from bilmo.embed.texts import Embedded, gathered, splitter_for, token_count
from bilmo.errors import ConfigError, OutputError, TextError
from bilmo.formats import open as layouts
from bilmo.ids.vocab import MARKS, Vocab

import strategies
from old_models import write_hdf5

TEXT = "He sat on the bank. She didn't!"
TOKENS = ["He", "sat", "on", "the", "bank", ".", "She", "did", "n't", "!"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    write_hdf5(folder, seed=1)
    return folder


@pytest.fixture(scope="module")
def elmo(model: Path) -> Embedder:
    return bilmo.load(model)


def close(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and bool(np.abs(a - b).max(initial=0) < 1e-5)


# Raw text


def test_a_text_gives_its_tokens_and_their_vectors(elmo):
    tokens, vectors = found = elmo.embed("He sat on the bank.")
    assert tokens == found.tokens == TOKENS[:6]
    assert close(vectors, elmo.embed([tokens])[0])


def test_each_sentence_of_a_text_is_embedded_by_itself(elmo):
    for mix in ("mean", "all", "concat", 1):
        found = elmo.embed(TEXT, mix=mix)
        assert found.tokens == TOKENS
        assert close(found.vectors, np.concatenate(elmo.embed([TOKENS[:6], TOKENS[6:]], mix=mix), axis=-2))


def test_many_texts_come_back_in_their_order_with_lists_of_tokens_among_them(elmo):
    found = elmo.embed([TEXT, "", ["a b", "c"], "他坐在河边。"])
    assert [item.tokens for item in (found[0], found[1], found[3])] == [TOKENS, [], ["他", "坐在", "河边", "。"]]
    assert isinstance(found[2], np.ndarray)
    assert found[2].shape == (2, 8)
    assert found[1].vectors.shape == (0, 8)
    assert elmo.embed([]) == []


@pytest.mark.parametrize("text", ["", " \t", "\n"])
def test_a_text_of_nothing_has_no_tokens(elmo, text):
    assert elmo.embed(text).tokens == []
    assert elmo.embed(text, mix="all").vectors.shape == (3, 0, 8)


def test_tokens_of_a_text_never_depend_on_the_texts_beside_it(elmo):
    alone = elmo.embed("She doesn't know").tokens
    for beside in ("le chat dort", "他坐在河边。", "was split , before ."):
        assert elmo.embed([beside, "She doesn't know", beside])[1].tokens == alone


@pytest.mark.parametrize(
    ("words", "tokens"), [(("n't",), ["do", "n't"]), (("cat",), ["don't"]), (None, ["do", "n't"])], ids=str
)
def test_a_vocabulary_tells_whether_the_model_knows_clitics(words, tokens):
    vocab = None if words is None else Vocab((*MARKS, *words))
    assert splitter_for("auto", "", vocab)("don't") == [tokens]


@pytest.mark.parametrize(
    ("how", "tokens"),
    [
        ("spaces", ["don't", "go.", "他坐在"]),
        ("en", ["do", "n't", "go", ".", "他坐在"]),
        ("zh", ["don't", "go", ".", "他", "坐在"]),
    ],
)
def test_the_way_to_split_can_be_told(model, how, tokens):
    assert bilmo.load(model, lang=how).embed("don't go. 他坐在").tokens == tokens


def test_an_unknown_way_to_split_is_refused_at_once(model):
    with pytest.raises(TextError, match="lang is 'klingon'; accepted: auto, spaces"):
        bilmo.load(model, lang="klingon")


@settings(max_examples=60)
@given(text=st.text(strategies.characters(), max_size=30))
def test_any_text_has_a_vector_for_each_token_and_loses_nothing(elmo, text):
    tokens, vectors = elmo.embed(text)
    assert "".join(tokens) == "".join(text.split())
    assert vectors.shape == (len(tokens), 8)
    assert np.isfinite(vectors).all()


def test_a_word_of_a_million_characters(elmo):
    word = "a漢" * 500_000
    tokens, vectors = elmo.embed(f"the {word} end")
    assert "".join(tokens) == f"the{word}end"
    assert len(vectors) == len(tokens)
    assert np.isfinite(vectors).all()


# Pooling and precision


@pytest.mark.parametrize("mix", ["mean", "all", "concat"])
@pytest.mark.parametrize("pool", ["mean", "max"])
def test_pooling_is_over_the_tokens_of_a_sentence_alone(elmo, mix, pool):
    sentences = [["a"], ["The", "cat", "sat", "on", "it"], ["b", "c"]]
    pooled = elmo.embed(sentences, mix=mix, pool=pool)
    for found, vectors in zip(pooled, elmo.embed(sentences, mix=mix), strict=True):
        assert close(found, getattr(vectors, pool)(axis=-2))


@pytest.mark.parametrize("pool", ["mean", "max"])
def test_a_sentence_of_no_tokens_pools_to_zeros(elmo, pool):
    found = elmo.embed([[], ["a"]], pool=pool)
    assert found[0].shape == found[1].shape == (8,)
    assert not found[0].any()
    assert elmo.embed("", mix="all", pool=pool).shape == (3, 8)


def test_a_text_of_several_sentences_is_pooled_over_all_its_tokens(elmo):
    assert close(elmo.embed(TEXT, pool="mean"), elmo.embed(TEXT).vectors.mean(axis=0))


def test_half_precision(elmo):
    for pool in ("none", "mean"):
        half, full = (elmo.embed(["a b", ""], pool=pool, dtype=dtype) for dtype in ("float16", "float32"))
        for a, b in zip(half, full, strict=True):
            a, b = (a, b) if pool == "mean" else (a.vectors, b.vectors)
            assert (a.dtype, b.dtype) == (np.float16, np.float32)
            assert np.array_equal(a, b.astype(np.float16))


@pytest.mark.parametrize("pool", ["none", "mean", "max"])
def test_a_value_beyond_the_range_of_half_precision_is_refused_with_the_remedy(elmo, pool):
    weights = {
        name: value * 1e6 if name.startswith("words.project") else value for name, value in elmo.bundle.weights.items()
    }
    large = Embedder(replace(elmo.bundle, weights=weights))
    found = large.embed("a b", mix=0, pool=pool)
    assert np.isfinite(found.vectors if pool == "none" else found).all()
    with pytest.raises(OutputError, match=r"a vector has the value -?\d.*float16 holds at most 65,504\. Use .*float32"):
        large.embed("a b", mix=0, pool=pool, dtype="float16")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"pool": "sum"}, "pool is 'sum'; accepted: none, mean, max"),
        ({"dtype": "int8"}, "dtype is 'int8'; accepted: float32, float16"),
        ({"mix": "weighted"}, "a weighted mix is learned with a task"),
        ({"mix": "tpo"}, "mix is 'tpo'; accepted: all, mean, top, concat, or layer numbers"),
        ({"mix": 9}, "layers are numbered 0"),
        ({"batch_tokens": 0}, "batch_tokens is 0; it must be 1 or more"),
    ],
)
def test_what_is_no_setting_is_refused(elmo, wrong, says):
    for call in (elmo.embed, lambda texts, **settings: list(elmo.embed_stream(texts, **settings))):
        with pytest.raises(ConfigError, match=says):
            call(["a"], **wrong)


# Streams


@settings(max_examples=20)
@given(texts=strategies.texts(max_sentences=8), budget=st.integers(1, 12), pool=st.sampled_from(["none", "max"]))
def test_a_stream_equals_the_list(elmo, texts, budget, pool):
    small = Embedder(elmo.bundle, batch_tokens=budget)
    for sentences in (texts, [" ".join(t for t in text) for text in texts]):
        found = list(small.embed_stream(iter(sentences), pool=pool))
        expected = elmo.embed(sentences, pool=pool)
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            if isinstance(a, Embedded):
                assert a.tokens == b.tokens
                a, b = a.vectors, b.vectors
            assert close(a, b)


def test_a_stream_takes_no_more_than_it_holds_and_never_ends_by_itself(elmo, monkeypatch):
    monkeypatch.setattr("bilmo.embed.embedder.STREAM_BATCHES", 2)
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield ["some", "words"]

    stream = Embedder(elmo.bundle, batch_tokens=20).embed_stream(endless())
    for _ in range(50):
        next(stream)
    assert taken <= 50 + 2 * 20


def test_a_carried_stream_goes_on_from_text_to_text(model):
    elmo, other = (bilmo.load(model, start="carry") for _ in range(2))
    found = list(elmo.embed_stream([TEXT, "cat", TEXT]))
    expected = [other.embed(TEXT), other.embed("cat"), other.embed(TEXT)]
    assert all(close(a.vectors, b.vectors) for a, b in zip(found, expected, strict=True))
    assert not close(found[0].vectors, found[2].vectors)


def test_a_carried_state_can_be_kept_and_gone_on_from(model):
    elmo, other = (bilmo.load(model, start="carry") for _ in range(2))
    assert elmo.carried() == {}
    first = elmo.embed("cat")
    kept = elmo.carried()
    assert len(kept) == 2 * 2 * 2
    expected = elmo.embed("dog")
    other.set_carried(kept)
    assert close(other.embed("dog").vectors, expected.vectors)
    other.set_carried({})
    assert close(other.embed("cat").vectors, first.vectors)


def test_a_single_string_is_no_stream(elmo):
    with pytest.raises(TextError, match=r"found one string\. Use embed"):
        elmo.embed_stream("He sat.")


def test_the_batch_size_changes_no_vector_and_must_be_one_at_least(elmo):
    expected = elmo.embed([TEXT, "a", "b c"])
    for size in (1, 3, 10_000):
        found = Embedder(elmo.bundle, batch_tokens=size).embed([TEXT, "a", "b c"])
        assert all(close(a.vectors, b.vectors) for a, b in zip(found, expected, strict=True))
    with pytest.raises(ConfigError, match="batch_tokens is 0"):
        Embedder(elmo.bundle, batch_tokens=0)


def test_long_words_weigh_more_so_that_few_are_held():
    assert token_count([["a", "b"], []]) == 6
    assert token_count([["x" * 1_000_000]]) > 10_000
    rows = [(k, [["x" * 1_000_000]]) for k in range(3)]
    assert [items for items, _ in gathered(rows, 16_000)] == [[0], [1], [2]]


def test_a_model_with_a_vocabulary_is_asked(model):
    bundle = replace(layouts.read(model), vocab=Vocab((*MARKS, "cat")))
    assert Embedder(bundle).embed("don't").tokens == ["don't"]

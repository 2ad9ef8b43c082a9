"""The options of `embed`: pooled arrays, normalised vectors, tensors, batches; and what it accepts as texts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bilmo
from bilmo.embed.embedder import Embedder
from bilmo.errors import ConfigError, OutputError, TextError
from program import program

import strategies
from task_data import made
from terminal import shown

SENTENCES = [["a"], ["The", "cat", "sat", "on", "it"], [], ["b", "c"]]
TEXTS = ["He sat on the bank. She didn't!", "", "a cat"]


@pytest.fixture(scope="module")
def elmo():
    return Embedder(made(0))


def close(a, b) -> bool:
    return a.shape == b.shape and bool(np.abs(a - b).max(initial=0) < 1e-5)


# Results


@pytest.mark.parametrize("mix", ["mean", "all", "concat", 1])
@pytest.mark.parametrize("pool", ["mean", "max"])
def test_many_texts_pool_to_one_array(elmo, mix, pool, monkeypatch):
    shape = (3, 16) if mix == "all" else (32,) if mix == "concat" else (16,)
    for texts in (TEXTS, SENTENCES):
        found = elmo.embed(texts, mix=mix, pool=pool)
        assert isinstance(found, np.ndarray) and found.shape == (len(texts), *shape) and found.dtype == np.float32
        alone = [elmo.embed(text if isinstance(text, str) else [text], mix=mix, pool=pool) for text in texts]
        assert close(found, np.stack([one.reshape(shape) for one in alone]))
        assert close(np.stack(list(elmo.embed_stream(texts, mix=mix, pool=pool))), found)
        monkeypatch.setattr("bilmo.embed.embedder.STREAM_BATCHES", 1)
        assert close(elmo.embed(iter(texts), mix=mix, pool=pool, batch_tokens=2), found)  # in many groups
        monkeypatch.undo()
    assert elmo.embed(TEXTS[0], mix=mix, pool=pool).shape == shape
    assert elmo.embed([], mix=mix, pool=pool, dtype="float16").shape == (0, *shape)


@settings(max_examples=50)
@given(text=st.text(st.sampled_from("ab. 'n’t玄德說\n\u3000🙂\ud800"), max_size=40))
def test_offsets_are_those_of_the_tokens(elmo, text):
    assert [text[begin:end] for begin, end in elmo.offsets(text)] == elmo.embed(text).tokens


def test_pooled_texts_are_computed_in_groups_so_that_memory_stays_small(elmo, monkeypatch):
    sizes = []
    plain = elmo.embed_rows
    monkeypatch.setattr(elmo, "embed_rows", lambda rows, **options: sizes.append(len(rows)) or plain(rows, **options))
    texts = [["a", "b", "c"]] * 500
    assert elmo.embed(texts, pool="mean", batch_tokens=100).shape == (500, 16)
    assert sum(sizes) == 500 and max(sizes) <= 80
    sizes.clear()
    assert len(elmo.embed(texts, batch_tokens=100)) == 500 and sizes == [500]


def test_a_carried_state_is_that_of_the_whole_call():
    bundle = made(0)
    pooled, plain = Embedder(bundle, start="carry"), Embedder(bundle, start="carry")
    for _ in range(2):
        expected = np.stack([vectors.mean(axis=0) for vectors in plain.embed([["a", "b"], ["c"]])])
        assert close(pooled.embed([["a", "b"], ["c"]], pool="mean", batch_tokens=1), expected)


@pytest.mark.parametrize("pool", ["none", "max"])
@pytest.mark.parametrize("mix", ["mean", "all"])
def test_normalised_vectors_have_length_1_and_the_same_direction(elmo, mix, pool):
    plain, found = (elmo.embed(SENTENCES, mix=mix, pool=pool, normalize=normalize) for normalize in (False, True))
    for a, b in zip(plain, found, strict=True):
        lengths = np.linalg.norm(a, axis=-1, keepdims=True)
        assert close(b * lengths, a)
        assert np.allclose(np.linalg.norm(b, axis=-1, keepdims=True), lengths > 0, atol=1e-6)
    half = elmo.embed("a cat", normalize=True, dtype="float16").vectors
    assert half.dtype == np.float16 and np.allclose(np.linalg.norm(half.astype(float), axis=-1), 1, atol=1e-3)
    streamed = next(elmo.embed_stream(["a cat"], normalize=True))
    assert close(streamed.vectors, elmo.embed("a cat", normalize=True).vectors)


def test_tensors_have_the_values_of_the_arrays(elmo):
    tokens, vectors = elmo.embed("a cat", as_tensor=True)
    assert tokens == ["a", "cat"] and isinstance(vectors, torch.Tensor) and vectors.device.type == "cpu"
    assert close(vectors.numpy(), elmo.embed("a cat").vectors)
    pooled = elmo.embed(TEXTS, pool="mean", as_tensor=True, dtype="float16")
    assert isinstance(pooled, torch.Tensor) and pooled.dtype == torch.float16
    assert np.array_equal(pooled.numpy(), elmo.embed(TEXTS, pool="mean", dtype="float16"))
    rows = elmo.embed(SENTENCES, as_tensor=True)
    assert [tuple(row.shape) for row in rows] == [(len(sentence), 16) for sentence in SENTENCES]
    assert elmo.embed([], pool="mean", as_tensor=True).shape == (0, 16)
    assert (vectors * 2).requires_grad is False


@settings(max_examples=20)
@given(texts=strategies.texts(max_sentences=6), budget=st.integers(1, 30), pool=st.sampled_from(["none", "mean"]))
def test_batch_tokens_change_no_vector(elmo, texts, budget, pool):
    plain, found = elmo.embed(texts, pool=pool), elmo.embed(texts, pool=pool, batch_tokens=budget)
    assert len(plain) == len(found) and all(close(a, b) for a, b in zip(plain, found, strict=True))


def test_batch_tokens_are_those_of_the_call(elmo, monkeypatch):
    plain, seen = elmo._runner.network.layers, []

    def counted(words, places, *rest):
        seen.append(int(places.lengths.sum()))
        return plain(words, places, *rest)

    monkeypatch.setattr(elmo._runner.network, "layers", counted)
    elmo.embed([["a"] * 8] * 10, batch_tokens=20)
    assert seen == [20] * 5
    seen.clear()
    elmo.embed([["a"] * 8] * 10)
    assert seen == [100]


def test_embedding_has_a_bar_on_a_terminal_if_asked_for(model, tmp_path):
    script = "import bilmo; bilmo.load('model').embed(['a cat'] * 200, batch_tokens=64, progress={})"
    seen = shown(tmp_path, "-c", script.format(True))
    assert "embedding" in seen and "100 %" in seen
    assert shown(tmp_path, "-c", script.format(False)) == ""


# What is accepted as texts


class Column:
    """A column of a table, as pandas has it: not a sequence, with `tolist`."""

    def __init__(self, values):
        self.values = values

    def __iter__(self):
        return iter(self.values)

    def tolist(self):
        return list(self.values)


class Table(Column):
    """A table, which iterates over the names of its columns."""

    columns = ("text", "label")


@pytest.mark.parametrize(
    "texts",
    [
        tuple(TEXTS),
        iter(TEXTS),
        Column(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        dict.fromkeys(TEXTS).keys(),
    ],
    ids=["tuple", "iterator", "column", "str array", "object array", "keys"],
)
def test_texts_may_be_a_column_or_an_array(elmo, texts):
    found = elmo.embed(texts)
    assert [tokens for tokens, _ in found] == [elmo.embed(text).tokens for text in TEXTS]


def test_sentences_may_be_arrays_of_tokens(elmo):
    expected = elmo.embed([["a", "cat"], ["the", "dog"]])
    square = np.array([["a", "cat"], ["the", "dog"]])
    rows = [np.array(["a", "cat"], dtype=object), Column(["the", "dog"])]
    for given_rows in (square, rows, Column(rows), np.array(["a", "cat", "the", "dog"]).reshape(2, 2)):
        assert all(close(a, b) for a, b in zip(elmo.embed(given_rows), expected, strict=True))
        assert len(elmo.layers(given_rows)) == 2
    assert elmo.module()(rows)[0].shape == (2, 2, 16)


def test_our_own_parquet_gives_tokens_back(model, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "texts.txt").write_text("A cat sat .\nthe dog\n")
    assert program(tmp_path, "embed", "model", "texts.txt", "-o", "v.parquet", "--pool", "mean").code == 0
    table = parquet.read_table(tmp_path / "v.parquet")
    expected = np.array(table["vector"].to_pylist(), dtype=np.float32)
    loaded = bilmo.load(model)
    tokens = table["tokens"]
    as_numpy = [np.array(row, dtype=object) for row in tokens.to_pylist()]  # as pandas reads the column
    for sentences in (tokens, tokens.to_numpy(), Column(as_numpy)):
        assert close(loaded.embed(sentences, pool="mean"), expected)
    with pytest.raises(TextError, match=r"texts is a Table: .*Choose one of its columns"):
        loaded.embed(table)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (Table(["text", "label"]), "texts is a Table: .*; accepted: .* Choose one of its columns"),
        (Column(["a", float("nan")]), "text 1 is a float: nan; it must be a string, or a list of words"),
        (np.array([b"a"]), "text 0 is a bytes: b'a'; it must be a string"),
        (np.array([1.5]), "text 0 is a float: 1.5; it must be a string"),
    ],
)
def test_what_cannot_be_texts_is_explained(elmo, texts, says):
    for call in (elmo.embed, lambda texts: list(elmo.embed_stream(texts))):
        with pytest.raises(TextError, match=says):
            call(texts)


# Saving


def test_a_saved_model_is_the_same_model(elmo, tmp_path):
    elmo.save(tmp_path / "saved")
    again = bilmo.load(tmp_path / "saved")
    assert close(again.embed(SENTENCES, pool="mean"), elmo.embed(SENTENCES, pool="mean"))
    zero = Embedder(elmo.bundle, start="zero")
    zero.save(str(tmp_path / "half"), dtype="float16")
    half = bilmo.load(tmp_path / "half")
    assert half.bundle.start is not None
    assert np.allclose(half.embed(SENTENCES, pool="mean"), elmo.embed(SENTENCES, pool="mean"), atol=0.05)
    with pytest.raises(OutputError, match="saved"):
        elmo.save(tmp_path / "saved")
    with pytest.raises(ConfigError, match="dtype is 'float64'; accepted: float32, float16"):
        elmo.save(tmp_path / "double", dtype="float64")
    assert not (tmp_path / "double").exists()

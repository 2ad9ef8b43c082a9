"""Words and their vectors without context: compared in Python and by `bilmo similar`."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bilmo
from bilmo.embed import word_space
from bilmo.embed.embedder import Embedder
from bilmo.embed.word_space import LAYER_0_SHARE, CommonPart, whitened
from bilmo.errors import ConfigError, TextError, VocabError
from bilmo.ids.vocab import MARKS, Vocab
from bilmo.net.config import CellConfig, TableConfig, WordsConfig
from bilmo.store import model_folder
from bilmo.store.bundle import Bundle
from bilmo.store.user_folders import cache_folder
from program import program

from task_data import made

WORDS = "the cat cats dog dogs cow red green blue bank river money ran runs".split()
VOCAB = Vocab((*MARKS, *WORDS))


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    """A character model with a softmax over a few words."""
    torch.manual_seed(5)
    head = {"softmax.weight": torch.randn(len(VOCAB), 8), "softmax.bias": torch.zeros(len(VOCAB))}
    plain = made(0)
    return replace(plain, weights=plain.weights | head, vocab=VOCAB)


@pytest.fixture
def elmo(bundle):
    return Embedder(bundle)


def unit(values):
    return values / np.linalg.norm(values, axis=-1, keepdims=True)


@pytest.fixture
def expected(bundle, elmo):
    """(words, 16): what the documentation says, written plainly."""
    rows = bundle.weights["softmax.weight"][3:].numpy()
    left, spreads, right = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    predicted = left[:, 1:] * spreads[1:] @ right[1:]  # without the direction of the largest spread
    return unit(np.concatenate([LAYER_0_SHARE * whitened(elmo.word_vectors(WORDS)), unit(predicted)], axis=1))


def test_whitened_vectors_have_no_common_part_no_strong_direction_and_length_one():
    strong = np.array([9, 1, 1, 1, 1, 1, 1, 0.2], dtype=np.float32)
    values = whitened((5 + strong * np.random.default_rng(0).normal(0, 1, (4000, 8))).astype(np.float32))
    assert np.allclose(np.linalg.norm(values, axis=1), 1, atol=1e-5)
    assert np.abs(values.mean(axis=0)).max() < 0.02
    spreads = np.linalg.eigvalsh(np.cov(values.T))
    assert spreads.max() < 2 * spreads.min()


def test_few_vectors_are_hardly_more_than_centred():
    values = np.random.default_rng(0).normal(3, 1, (6, 64)).astype(np.float32)
    centred = values - values.mean(axis=0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    found = whitened(values)
    assert np.allclose(found @ found.T, centred @ centred.T, atol=0.1)
    assert whitened(np.ones((1, 4), dtype=np.float32)).tolist() == [[0, 0, 0, 0]]


def test_a_common_part_does_not_change_the_neighbours():
    values = np.random.default_rng(0).normal(0, 1, (40, 3)).astype(np.float32)
    plain, shifted = (whitened(rows) for rows in (values, values + 100))
    assert np.allclose(plain @ plain.T, shifted @ shifted.T, atol=1e-3)


def test_a_direction_that_all_rows_share_does_not_change_the_neighbours():
    draw = np.random.default_rng(0)
    rows, frequency = draw.normal(0, 1, (200, 6)), draw.normal(0, 30, 200)
    rows[:, 2] = 0
    rows -= rows.mean(axis=0)
    others = np.column_stack([rows, np.ones(200)])
    frequency -= others @ np.linalg.lstsq(others, frequency)[0]  # independent of them
    frequent = rows.copy()
    frequent[:, 2] = 50 + frequency
    plain, found = unit(rows), CommonPart.of(frequent).removed(frequent)
    assert np.allclose(plain @ plain.T, found @ found.T, atol=1e-4)
    assert CommonPart.of(rows[:1]).removed(rows[:1]).tolist() == [[0] * 6]
    assert CommonPart.of(rows[:0]).removed(rows[:0]).shape == (0, 6)


# Comparing words


def test_a_word_has_its_layer_0_and_its_softmax_row(elmo, expected):
    assert np.allclose(np.stack([elmo[word] for word in WORDS]), expected, atol=1e-5)
    assert "cat" in elmo and "xyzzy" not in elmo and "<S>" not in elmo and 7 not in elmo


def test_the_most_similar_words_are_those_with_the_largest_cosines(elmo, expected):
    for place, word in enumerate(WORDS):
        cosines = dict(zip(WORDS, expected @ expected[place], strict=True))
        found = elmo.most_similar(word, topn=5)
        assert [name for name, _ in found] == sorted((w for w in WORDS if w != word), key=lambda w: -cosines[w])[:5]
        assert all(abs(cosine - cosines[name]) < 1e-5 for name, cosine in found)
        assert all(abs(elmo.similarity(word, name) - cosine) < 1e-5 for name, cosine in found)
    assert len(elmo.most_similar("cat", topn=100)) == len(WORDS) - 1


def test_words_are_added_and_taken_away(elmo, expected):
    vectors = dict(zip(WORDS, expected, strict=True))
    target = unit(vectors["cats"] - vectors["cat"] + vectors["dog"])
    cosines = {word: float(target @ vector) for word, vector in vectors.items() if word not in ("cat", "cats", "dog")}
    found = elmo.most_similar(positive=["cats", "dog"], negative="cat", topn=3)
    assert [word for word, _ in found] == sorted(cosines, key=lambda word: -cosines[word])[:3]
    assert found[0][1] == pytest.approx(max(cosines.values()), abs=1e-5)
    assert elmo.most_similar(negative=["cat"], topn=1)[0][0] == min(WORDS, key=lambda w: vectors["cat"] @ vectors[w])


def test_the_word_that_does_not_match_is_farthest_from_the_mean(elmo, expected):
    vectors = dict(zip(WORDS, expected, strict=True))
    given = ["cat", "dog", "cow", "bank"]
    mean = np.mean([vectors[word] for word in given], axis=0)
    assert elmo.doesnt_match(given) == min(given, key=lambda word: float(mean @ vectors[word]))


def test_texts_are_compared_by_the_mean_of_their_words(elmo, expected):
    vectors = dict(zip(WORDS, expected, strict=True))
    one, other = (np.mean([vectors[w] for w in text.split()], axis=0) for text in ("the cat ran", "red dogs"))
    cosine = float(unit(one) @ unit(other))
    assert elmo.similarity("the cat ran", "red dogs") == pytest.approx(cosine, abs=1e-5)
    assert elmo.similarity(["the", "cat", "ran"], "red dogs") == pytest.approx(cosine, abs=1e-5)
    assert elmo.similarity("the cat ran", "red xyzzy dogs") == pytest.approx(cosine, abs=1e-5)  # unknown: left out


@settings(max_examples=25)
@given(a=st.sampled_from([*WORDS, "xyzzy", "字"]), b=st.sampled_from([*WORDS, "catz"]))
def test_a_similarity_is_a_cosine(bundle, a, b):
    elmo = Embedder(bundle)
    assert elmo.similarity(a, b) == pytest.approx(elmo.similarity(b, a), abs=1e-6)
    assert -1.00001 <= elmo.similarity(a, b) <= 1.00001 and elmo.similarity(a, a) == pytest.approx(1, abs=1e-5)


def test_a_word_that_was_never_seen_is_compared_by_spelling_alone_with_a_note(elmo, caplog):
    caplog.set_level(logging.INFO, "bilmo")
    spelled = word_space.Whitening.of(elmo.word_vectors(WORDS))
    cosines = spelled.apply(elmo.word_vectors(WORDS)) @ spelled.apply(elmo.word_vectors(["catz"]))[0]
    found = elmo.most_similar("catz", topn=3)
    assert [word for word, _ in found] == [WORDS[n] for n in np.argsort(-cosines)[:3]]
    assert found[0][1] == pytest.approx(cosines.max(), abs=1e-5)
    assert elmo.similarity("catz", found[0][0]) == pytest.approx(cosines.max(), abs=1e-5)
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == "'catz': never seen in training, or too rare for the vocabulary; compared by spelling alone"
    vector = elmo["catz"]
    assert not vector[8:].any() and np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    caplog.clear()
    elmo.most_similar("cat")
    assert not caplog.records


def test_a_model_without_a_softmax_compares_spelling(bundle):
    weights = {name: value for name, value in bundle.weights.items() if not name.startswith("softmax.")}
    elmo = Embedder(replace(bundle, weights=weights))
    values = whitened(elmo.word_vectors(WORDS))
    assert elmo["cat"].shape == (8,) and np.allclose(elmo["cat"], values[1], atol=1e-5)
    best = WORDS[int(np.argsort(-(values @ values[1]))[1])]
    assert elmo.most_similar("cat", topn=1)[0][0] == best


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda elmo: elmo.most_similar(), TextError, "there is no word to compare with"),
        (lambda elmo: elmo.most_similar(" "), TextError, "a word must be a string that is not empty; found ' '"),
        (lambda elmo: elmo.most_similar([3]), TextError, r"a word must be a string .* found 3 \(int\)"),
        (lambda elmo: elmo[0], TextError, r"a word must be a string .* found 0 \(int\)"),
        (lambda elmo: list(elmo), TextError, "a word must be a string"),
        (lambda elmo: elmo.similarity("cat", " "), TextError, "a text without words cannot be compared"),
        (lambda elmo: elmo.doesnt_match(["cat"]), TextError, "there must be several words"),
        (lambda elmo: elmo.most_similar("cat", candidates=0), ConfigError, "candidates is 0; it must be 1 or more"),
    ],
)
def test_what_cannot_be_compared_is_explained(elmo, call, error, says):
    with pytest.raises(error, match=says):
        call(elmo)


def test_a_model_without_a_vocabulary_or_without_the_word_is_explained():
    with pytest.raises(VocabError, match="has no vocabulary of words to compare with"):
        Embedder(made(0)).most_similar("cat")
    assert "cat" not in Embedder(made(0))
    config = bilmo.BiLMConfig(
        words=WordsConfig(table=TableConfig(rows=len(VOCAB), width=6), project=False),
        cell=CellConfig(cells=8),
        width=6,
    )
    table = Embedder(Bundle(config, bilmo.BiLM(config).state_dict(), layout="test", vocab=VOCAB))
    assert len(table.most_similar("cat", topn=3)) == 3
    with pytest.raises(VocabError, match="has vectors only for the words of its table, and 'xyzzy' is not one of them"):
        table.most_similar("xyzzy")


# What is kept


@pytest.fixture
def encoded(monkeypatch):
    """The numbers of words that are encoded."""
    found: list[int] = []
    plain = Embedder.word_vectors
    monkeypatch.setattr(Embedder, "word_vectors", lambda self, words: found.append(len(words)) or plain(self, words))
    return found


def test_the_words_of_the_vocabulary_are_computed_once(bundle, encoded):
    elmo = Embedder(bundle)
    first = elmo.most_similar("cat")
    assert encoded == [len(WORDS), 1]
    assert elmo.most_similar("cat") == first and elmo.similarity("cat", "dog") and elmo["cow"].any()
    assert encoded == [len(WORDS), 1, 1, 1, 1, 1]
    encoded.clear()
    assert Embedder(bundle).most_similar("cat") == first  # another process finds them in the cache folder
    assert encoded == [1]
    assert len(Embedder(bundle).most_similar("cat", candidates=8)) == 4  # three of the first eight are marks
    assert encoded == [1, 5, 1]


def test_a_cache_that_is_damaged_or_of_other_words_is_not_used(bundle, encoded):
    first = Embedder(bundle).most_similar("cat")
    (file,) = cache_folder("words").iterdir()
    file.write_bytes(file.read_bytes()[:-5])
    assert Embedder(bundle).most_similar("cat") == first
    other = replace(bundle, vocab=Vocab((*MARKS, *reversed(WORDS))))
    assert Embedder(other).most_similar("cat", topn=20) != first
    assert encoded == [len(WORDS), 1] * 3


def test_only_the_last_files_are_kept(bundle, monkeypatch):
    monkeypatch.setattr(word_space, "KEPT_FILES", 2)
    elmo, folder = Embedder(bundle), cache_folder("words")
    made = []
    for moment, candidates in enumerate((5, 6, 7, 8)):
        before = set(folder.glob("*"))
        elmo.most_similar("cat", candidates=candidates)
        (file,) = set(folder.glob("*")) - before
        os.utime(file, (moment, moment))
        made.append(file)
    assert set(folder.iterdir()) == set(made[-2:])


def test_a_cache_folder_that_cannot_be_written_is_no_error(bundle, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BILMO_CACHE", str(tmp_path / "file"))
    assert len(Embedder(bundle).most_similar("cat", topn=3)) == 3


# The command


def test_similar_shows_what_python_gives_for_several_words(bundle, tmp_path):
    model_folder.write(bundle, tmp_path / "model")
    elmo = bilmo.load(tmp_path / "model")
    done = program(tmp_path, "similar", "model", "cat", "catz", "-n", "2")
    assert done.code == 0, done.err
    lines = [line.split() for line in done.out.splitlines()]
    for head, word in ((0, "cat"), (4, "catz")):
        assert lines[head] == [f"{word}:"]
        assert lines[head + 1 : head + 3] == [[name, f"{c:.3f}"] for name, c in elmo.most_similar(word, topn=2)]
    assert lines[3] == []
    assert (
        done.err == "note: 'catz': never seen in training, or too rare for the vocabulary; compared by spelling alone\n"
    )
    alone = program(tmp_path, "similar", "model", "cat", "-n", "2")
    assert alone.out.splitlines() == done.out.splitlines()[1:3] and alone.err == ""


def test_similar_in_a_text_splits_each_line_as_embed_does(bundle, tmp_path):
    model_folder.write(bundle, tmp_path / "model")
    lines = ["The cat ran. The dog didn't.", "the cat did n't run .", "猫看见狗。"]
    (tmp_path / "text.txt").write_text("\n".join(lines * 3), encoding="utf-8")
    elmo = bilmo.load(tmp_path / "model")
    words = {word for line in lines for word in elmo.embed(line).tokens}
    assert {"n't", "cat", "看见"} <= words
    done = program(tmp_path, "similar", "model", "cat", "--in", "text.txt", "-n", "99", "--json")
    (found,) = json.loads(done.out)
    assert {"cat", *(near["word"] for near in found["similar"])} == words


def test_similar_in_a_text_takes_several_words(bundle, tmp_path):
    model_folder.write(bundle, tmp_path / "model")
    (tmp_path / "text.txt").write_text("the cat ran .\nthe dog ran .\n" * 4)
    done = program(tmp_path, "similar", "model", "cat", "dog", "--in", "text.txt", "-n", "1", "--lang", "spaces")
    assert done.code == 0 and [line for line in done.out.splitlines() if line.endswith(":")] == ["cat:", "dog:"]
    missing = program(tmp_path, "similar", "model", "cat", "cow", "--in", "text.txt", "--lang", "spaces")
    assert missing.code == 1 and "'cow' is used fewer than 3 times" in missing.err

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bilmo.training.corpus
import bilmo.training.recipe
from bilmo.errors import DamagedFile, TextError
from bilmo.training.corpus import Corpus, build
from small_runs import write_text

FILES = ("train.ids", "train.ends", "held_out.ids", "held_out.ends", "words.txt", "counts.npy")
LINES = [f"{word} cat sat on mat number {n} ." for n in range(200) for word in ("the", "a")]


def words_of(corpus, side):
    sentences, words = corpus.text(side), corpus.words
    starts = [0, *sentences.ends[:-1]]
    return [[words[id] for id in sentences.ids[a:b]] for a, b in zip(starts, sentences.ends, strict=True)]


def test_every_sentence_is_on_one_side_and_reads_as_it_was(tmp_path):
    corpus = build(LINES, "spaces", tmp_path / "c", held_out=0.2, seed=1)
    train, held = words_of(corpus, "train"), words_of(corpus, "held_out")
    assert sorted(map(tuple, train + held)) == sorted(tuple(line.split()) for line in LINES)
    assert 0.1 < len(held) / len(LINES) < 0.3
    assert corpus.facts.tokens == {"train": sum(map(len, train)), "held_out": sum(map(len, held))}
    assert corpus.facts.sentences == {"train": len(train), "held_out": len(held)}


def test_words_are_sorted_by_falling_count_in_the_training_text(tmp_path):
    corpus = build(LINES, "spaces", tmp_path / "c", held_out=0.3, seed=1)
    train = [word for sentence in words_of(corpus, "train") for word in sentence]
    assert corpus.words[:3] == ["<S>", "</S>", "<UNK>"]
    counts = [train.count(word) for word in corpus.words[3:]]
    assert counts == sorted(counts, reverse=True)
    assert corpus.counts[3:].tolist() == counts
    assert corpus.facts.words == len(corpus.words)


def test_a_paragraph_that_occurs_twice_is_never_on_both_sides(tmp_path):
    corpus = build(LINES * 3, "spaces", tmp_path / "c", held_out=0.3, seed=5)
    train, held = ({tuple(s) for s in words_of(corpus, side)} for side in ("train", "held_out"))
    assert train and held and not train & held


def test_the_seed_decides_what_is_held_out(tmp_path):
    sides = [
        words_of(build(LINES, "spaces", tmp_path / str(n), held_out=0.3, seed=n // 2), "held_out") for n in range(4)
    ]
    assert sides[0] == sides[1] != sides[2] == sides[3]


def test_renumbering_in_pieces_changes_nothing(tmp_path, monkeypatch):
    whole = build(LINES, "spaces", tmp_path / "a", held_out=0.2, seed=1)
    monkeypatch.setattr(bilmo.training.corpus, "IDS_AT_ONCE", 7)
    pieces = build(LINES, "spaces", tmp_path / "b", held_out=0.2, seed=1)
    assert np.array_equal(whole.text("train").ids, pieces.text("train").ids)


@settings(max_examples=30)
@given(st.lists(st.lists(st.text(alphabet="ab字", min_size=1, max_size=3), max_size=5), min_size=1, max_size=20))
def test_any_text_comes_back(tmp_path_factory, sentences):
    lines = [" ".join(sentence) for sentence in sentences] + ["held out"]
    folder = tmp_path_factory.mktemp("corpus") / "c"
    try:
        corpus = build(lines, "spaces", folder, held_out=0.5, seed=2)
    except TextError:
        assert not folder.exists()
        return
    found = words_of(corpus, "train") + words_of(corpus, "held_out")
    assert sorted(found) == sorted(line.split() for line in lines if line.split())


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.text(alphabet="abcdef字<", min_size=1, max_size=2), max_size=6), min_size=8, max_size=40),
    st.integers(4, 30),
)
def test_a_bound_on_words_keeps_the_most_frequent_ones_and_counts_them_exactly(tmp_path_factory, sentences, most):
    lines = [" ".join(sentence) for sentence in sentences] + ["held out", "one more", "and another"]
    folder = tmp_path_factory.mktemp("corpus")
    try:
        whole = build(lines, "spaces", folder / "whole", held_out=0.5, seed=2)
    except TextError:
        return
    before = bilmo.training.corpus.FILES_AT_ONCE
    bilmo.training.corpus.FILES_AT_ONCE = 3
    try:
        some = build(lines, "spaces", folder / "some", held_out=0.5, seed=2, max_words=most)
    finally:
        bilmo.training.corpus.FILES_AT_ONCE = before
    counts = dict(zip(whole.words, whole.counts.tolist(), strict=True))
    least = some.facts.least
    kept = [word for word in whole.words[3:] if counts[word] >= least]
    assert some.words == [*whole.words[:3], *kept]
    assert len(some.words) <= most + 3
    if least:  # one more count would have been too many words
        assert sum(count >= least - 1 for count in counts.values()) > most
    assert some.counts[3:].tolist() == [counts[word] for word in kept]
    assert some.counts.sum() == whole.counts.sum()
    for side in ("train", "held_out"):
        expected = [[word if word in some.words else "<UNK>" for word in row] for row in words_of(whole, side)]
        assert words_of(some, side) == expected
    assert {path.name for path in (folder / "some").iterdir()} == {path.name for path in (folder / "whole").iterdir()}


def test_a_bound_on_words_is_said_and_too_small_a_bound_is_refused(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path, words=tuple(f"w{k}" for k in range(80)))
    monkeypatch.setattr(bilmo.training.recipe, "FEWEST_WORDS", 10)
    command = ("train", "text.txt", "-o", "model", "--recipe", "recipe.toml", "--epochs", 0.1)
    done = run(*command, "--max-words", 40)
    assert done.code == 0 and "times in the training text are read as <UNK> (max_words is 40)" in done.err
    assert len((tmp_path / "model" / "vocab.txt").read_text().splitlines()) <= 43
    refused = run(*command, "--max-words", 9)
    assert refused.code == 1 and "max_words is 9; it must be from 10" in refused.err


def test_a_text_that_is_held_out_completely_is_refused(tmp_path):
    with pytest.raises(TextError, match="2 sentences, and all of its paragraphs were chosen as held-out text"):
        build(["a b", "c"], "spaces", tmp_path / "c", held_out=0.9999, seed=1)


@pytest.mark.parametrize("lines, says", [([], "every line is blank"), (["", " "], "blank"), (["a b"], "held-out")])
def test_a_text_that_cannot_be_trained_on_is_refused_and_leaves_nothing(tmp_path, lines, says):
    with pytest.raises(TextError, match=says):
        build(lines, "spaces", tmp_path / "c", held_out=0.0001, seed=1)
    assert not list(tmp_path.iterdir())


def old(facts):
    """facts.json as it was when files had no hashes."""
    data = json.loads(facts)
    del data["sha256"]
    return json.dumps(data).encode()


@pytest.mark.parametrize(
    "name, damage, says",
    [
        ("train.ids", lambda content: content[:-8], "is damaged: it has"),
        ("held_out.ends", lambda content: content + b"1", "is damaged: it has"),
        ("words.txt", lambda content: content[:20], "is damaged: it has"),
        ("counts.npy", lambda content: content[:150], "this corpus cannot be used"),
    ],
)
def test_a_corpus_without_hashes_is_read_and_files_of_another_size_are_refused(tmp_path, name, damage, says):
    before = build(LINES, "spaces", tmp_path / "c", held_out=0.2, seed=1)
    facts, file = tmp_path / "c" / "facts.json", tmp_path / "c" / name
    facts.write_bytes(old(facts.read_bytes()))
    found = Corpus(tmp_path / "c")
    assert found.words == before.words and found.identity == "" != before.identity
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(DamagedFile, match=says):
        Corpus(tmp_path / "c")


def flipped(content):
    return content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]


@pytest.mark.parametrize(
    "name, damage, says",
    [
        ("train.ids", lambda content: content[:-8], "train.ids: is not the file that was saved"),
        ("held_out.ends", lambda content: content + b"1", "held_out.ends: is not the file that was saved"),
        *((name, flipped, f"{name}: is not the file that was saved") for name in FILES),
        ("facts.json", lambda content: content.replace(b'"lang": "spaces"', b'"lang": "zh"'), "facts.json: is not the"),
        (
            "facts.json",
            lambda content: content.replace(b'corpus": 2', b'corpus": 2.0'),
            "bilmo_corpus: must be an integer",
        ),
        ("facts.json", lambda _: b'{"bilmo_corpus": 2}', "tokens"),
        ("facts.json", lambda _: b'{"bilmo_corpus": 2, "lang": "", "words": 3, "tokens": {}, "sentences": {}}', "used"),
        ("facts.json", lambda _: b"[]", "another version of bilmo"),
        ("facts.json", lambda _: b"{", "is not JSON"),
        ("words.txt", lambda content: content[:20], "words.txt: is not the file that was saved"),
        ("counts.npy", lambda _: b"", "counts.npy: is not the file that was saved"),
        ("words.txt", None, "words.txt: is missing"),
    ],
)
def test_a_damaged_file_is_refused_with_what_to_do(tmp_path, name, damage, says):
    build(LINES, "spaces", tmp_path / "c", held_out=0.2, seed=1)
    file = tmp_path / "c" / name
    file.write_bytes(damage(file.read_bytes())) if damage else file.unlink()
    with pytest.raises(DamagedFile, match=says) as raised:
        Corpus(tmp_path / "c")
    assert "Delete this folder" in str(raised.value)


def test_a_corpus_of_the_version_before_is_refused_with_what_to_do(tmp_path):
    build(LINES, "spaces", tmp_path / "c", held_out=0.2, seed=1)
    old = '{"words": 9, "tokens": {"train": 9, "held": 2}, "sentences": {"train": 3, "held": 1}}'
    (tmp_path / "c" / "facts.json").write_text(old)
    with pytest.raises(DamagedFile, match=r"made by another version of bilmo \(corpus format 1.* Delete this folder"):
        Corpus(tmp_path / "c")

"""Given word vectors as input: frozen or tuned, and words that have none."""

import numpy as np
import pytest
import torch

from bilmo.errors import ConfigError
from bilmo.formats import open as layouts
from bilmo.training.run import train
from program import program
from small_runs import recipe, write_text

KNOWN = ("the", "cat", "dog", "sat", "a", ".")


def write_vectors(folder, width, more=()):
    """A GloVe file that knows some words; returns their vectors."""
    values = np.random.default_rng(0).normal(0, 0.5, (len(KNOWN) + len(more), width)).astype(np.float32)
    rows = [f"{word} {' '.join(map(repr, row.tolist()))}\n" for word, row in zip((*KNOWN, *more), values, strict=True)]
    (folder / "glove.txt").write_text("".join(rows), encoding="utf-8")
    return dict(zip((*KNOWN, *more), values, strict=True))


def trained(folder, beside="", **changes):
    """The model of a run on given vectors, and the rows of its word table; `beside` may be "chars+"."""
    text = write_text(folder)
    settings = recipe(folder, words=f"{beside}vectors:{folder / 'glove.txt'}", **changes)
    list(train([text], folder / "model", settings))
    bundle = layouts.read(folder / "model")
    return bundle, {word: bundle.weights["words.table.weight"][k].numpy() for k, word in enumerate(bundle.vocab.words)}


@pytest.mark.parametrize("width", [8, 5])  # as wide as the network, and projected to its width
def test_frozen_vectors_stay_to_the_bit_and_everything_else_is_trained(tmp_path, width):
    given = write_vectors(tmp_path, width)
    first, rows = trained(tmp_path, epochs=0.1, rate=0.0)
    for word in KNOWN:
        assert rows[word].tobytes() == given[word].tobytes(), word
    (tmp_path / "model").rename(tmp_path / "beginning")
    last, rows = trained(tmp_path, epochs=1)
    for word in KNOWN:
        assert rows[word].tobytes() == given[word].tobytes(), word
    moved = {name for name, value in last.weights.items() if not np.array_equal(value, first.weights[name])}
    assert set(last.weights) - moved == {"words.table.weight"}


def test_tuned_vectors_change(tmp_path):
    given = write_vectors(tmp_path, 8)
    _, rows = trained(tmp_path, epochs=1, tuned=True)
    assert all(not np.array_equal(rows[word], given[word]) for word in KNOWN)
    assert all(np.abs(rows[word] - given[word]).max() < 0.5 for word in KNOWN)  # they began as what was given


@pytest.mark.parametrize("more", [(), ("<unk>",)], ids=["mean of all", "the file's own"])
def test_a_word_without_a_vector_starts_as_an_unknown_word(tmp_path, more):
    given = write_vectors(tmp_path, 8, more)
    _, rows = trained(tmp_path, epochs=0.1, rate=0.0)
    read = [vector for word, vector in given.items() if word in KNOWN]
    unknown = given["<unk>"] if more else np.mean(read, axis=0)
    np.testing.assert_allclose(rows["字"], unknown, rtol=1e-6)
    np.testing.assert_allclose(rows["<UNK>"], unknown, rtol=1e-6)


def test_characters_beside_frozen_vectors_are_both_read(tmp_path):
    """A word without a vector is known by its spelling; a word with one also by its vector."""
    given = write_vectors(tmp_path, 5)
    bundle, rows = trained(tmp_path, "chars+", epochs=1)
    for word in KNOWN:
        assert rows[word].tobytes() == given[word].tobytes(), word
    assert bundle.config.words.chars and bundle.config.words.table.width == 5
    words = bundle.network().words
    with torch.no_grad():
        named = ["mat", "saw", "cat", "unheard", "of"]
        known = words(bundle.indexer().words([bundle.indexer().key(word) for word in named]))
        table = words.table.weight.clone()
        words.table.weight.zero_()
        without = words(bundle.indexer().words([bundle.indexer().key(word) for word in named]))
        words.table.weight.copy_(table)
    assert len({tuple(row.tolist()) for row in known}) == len(named)  # words without a vector differ by their spelling
    changed = (known != without).any(dim=1).tolist()
    assert changed == [True, True, True, False, False]  # words beyond the vocabulary read the row of <UNK>


def test_dropped_vectors_train_the_unknown_row_and_do_not_affect_evaluation(tmp_path):
    write_vectors(tmp_path, 5)
    first, _ = trained(tmp_path, "chars+", epochs=0.1, rate=0.0)
    (tmp_path / "model").rename(tmp_path / "beginning")
    without, _ = trained(tmp_path, "chars+", epochs=1)
    (tmp_path / "model").rename(tmp_path / "without")
    dropped, _ = trained(tmp_path, "chars+", epochs=1, vector_dropout=0.3)
    marks = "words.table.marks"
    assert torch.equal(without.weights[marks][2], first.weights[marks][2])  # every word of this text is known
    assert not torch.equal(dropped.weights[marks][2], first.weights[marks][2])
    assert not torch.equal(dropped.weights[marks][0], first.weights[marks][0])  # boundaries are never dropped


def test_dropout_of_vectors_needs_characters_and_vectors(tmp_path):
    write_vectors(tmp_path, 5)
    write_text(tmp_path)
    with pytest.raises(ConfigError, match="vector_dropout"):
        recipe(tmp_path, words=f"vectors:{tmp_path / 'glove.txt'}", vector_dropout=0.3)


@pytest.mark.parametrize(
    "content, says",
    [(None, "there is no such file"), ("other 1 2 3\n", "has none of the requested words"), ("the 1 x\n", "numbers")],
)
def test_an_unusable_vectors_file_is_refused_and_leaves_no_folder(tmp_path, content, says):
    write_text(tmp_path)
    if content:
        (tmp_path / "glove.txt").write_text(content, encoding="utf-8")
    command = ("train", "text.txt", "-o", "model", "--recipe", "recipe.toml", "--words", "vectors:glove.txt")
    done = program(tmp_path, *command)
    assert done.code == 1 and says in done.err and "glove.txt" in done.err
    assert not (tmp_path / "model").exists()

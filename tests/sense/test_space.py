"""Vectors of uses, ready to be compared."""

import numpy as np
import pytest

from bilmo.embed.embedder import Embedder
from bilmo.embed.word_space import Whitening
from bilmo.errors import TextError
from bilmo.sense import space as module
from bilmo.sense.places import in_line
from bilmo.sense.space import Space, embedded, sampled
from bilmo.text.brackets import marked

from task_data import made

ELMO = Embedder(made(0), lang="en")
LINES = ["He sat on the bank. She ran!", "", "The bank is closed, he said.", "..."]


def places():
    return [place for line in LINES for place in in_line(ELMO, line)]


def test_a_space_centres_whitens_and_scales_the_vectors_of_all_words():
    space = Space.of_lines(ELMO, LINES)
    found = list(space.uses(ELMO, places()))
    assert [place for place, _ in found] == places()
    raw = np.concatenate(
        [
            vectors[place.words]
            for place, vectors in zip(places(), ELMO.embed([p.tokens for p in places()]), strict=True)
        ]
    )
    values = np.concatenate([vectors for _, vectors in found])
    assert np.allclose(values, Whitening.of(raw).apply(raw), atol=1e-4)
    assert np.allclose(np.linalg.norm(values, axis=1), 1, atol=1e-5) and len(values) == 13


def test_the_vector_of_a_marked_word_is_that_of_its_use_in_the_text():
    space = Space.of_lines(ELMO, LINES)
    asked = space.vector(ELMO, *marked(ELMO.split, "He sat on the [bank]. She ran!"))
    place, vectors = next(space.uses(ELMO, places()))
    assert np.allclose(asked, vectors[place.words.index(4)], atol=1e-5)


@pytest.mark.parametrize("words", [1, 3, 1000])
def test_batches_change_nothing(monkeypatch, words):
    monkeypatch.setattr(module, "BATCH_WORDS", words)
    found = list(embedded(ELMO, iter(places()), "top"))
    assert [len(vectors) for _, vectors in found] == [5, 2, 6, 0]
    whole = ELMO.embed([place.tokens for place in places()], mix="top")
    assert all(np.allclose(v, all_[p.words], atol=1e-5) for (p, v), all_ in zip(found, whole, strict=True))


def test_the_sample_is_spread_over_all_lines_and_the_same_every_time(monkeypatch):
    monkeypatch.setattr(module, "SAMPLE_LINES", 50)
    lines = [f"{number} " + "x" * 5000 for number in range(5000)]
    found = sampled(iter(lines))
    assert found == sampled(iter(lines)) and len(found) == 50 == len(set(found))
    numbers = [int(line.split()[0]) for line in found]
    assert min(numbers) < 1000 and max(numbers) > 4000 and numbers != sorted(numbers)
    assert {len(line) for line in found} == {module.SAMPLE_CHARACTERS}
    assert sorted(sampled(["a", " ", "b"])) == ["a", "b"]


def test_a_text_without_words_is_refused():
    with pytest.raises(TextError, match="no word in the text"):
        Space.of_lines(ELMO, ["", " ... "])

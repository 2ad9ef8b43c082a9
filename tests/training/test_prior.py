"""What counts say of words that were never seen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilmo.training.prior import Prior, discount
from small_runs import loop, write_text

UNKNOWN = 2


def prior(counts):
    """Of a vocabulary that has every word; the first three are the marks."""
    return Prior(np.array([0, 0, 0, *counts]), np.arange(3 + len(counts)), UNKNOWN)


def test_the_discount_is_that_of_ney():
    assert discount(np.array([0, 5, 3, 2, 2, 1, 1, 1, 1])) == 4 / (4 + 2 * 2)
    assert discount(np.array([5, 3, 2, 2])) == 0


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(0, 2**32))
def test_every_word_gives_up_the_same_part_of_one_occurrence(counts, seed):
    counts = sorted(counts, reverse=True)
    shares = prior(counts).log_shares({}, 3 + len(counts)).exp().numpy()
    given_up = discount(np.array(counts))
    expected = np.array([0, 0, given_up * len(counts), *(count - given_up for count in counts)]) + 1
    np.testing.assert_allclose(shares, expected / expected.sum())
    text = np.repeat(np.arange(3, 3 + len(counts)), counts)
    seen = prior(counts).targets(text, np.random.default_rng(seed))
    assert set(seen[seen != text]) <= {UNKNOWN}


def test_words_become_unknown_as_often_as_expected():
    counts = [100, 2, 1, 1]
    text = np.repeat([3, 4, 5], 20_000)
    seen = prior(counts).targets(text, np.random.default_rng(1)).reshape(3, -1)
    assert (seen == UNKNOWN).mean(axis=1) == pytest.approx([0.5 / 100, 0.5 / 2, 0.5], abs=0.015)
    marks = np.zeros(1000, dtype=np.int64)
    assert not prior(counts).targets(marks, np.random.default_rng(1)).any()


def test_if_the_text_has_unknown_words_no_other_word_becomes_unknown():
    some = Prior(np.array([0, 0, 0, 9, 2, 1, 1]), np.array([0, 1, 2, 3, 4, 5, UNKNOWN]), UNKNOWN)
    text = np.repeat([3, 4, 5, 6], 100)
    assert some.targets(text, np.random.default_rng(1)).tolist() == np.repeat([3, 4, 5, UNKNOWN], 100).tolist()
    assert some.log_shares({0: 3.0}, 6).exp().numpy() * 22 == pytest.approx([4, 1, 2, 10, 3, 2])


def test_training_hides_words_from_the_softmax_and_evaluations_do_not(tmp_path):
    rare = tuple(f"word{n}" for n in range(400))
    write_text(tmp_path, words=("the", *rare))
    run = loop(tmp_path)
    hidden = []
    forward = run.model.forward

    def listening(text, words, targets, *rest, **options):
        ids = text.forward.targets[0]
        hidden.append((targets(ids) != run._vocab_ids[ids]).any())
        return forward(text, words, targets, *rest, **options)

    run.model.forward = listening
    for number in range(5):
        run.step(run.text(0)[number], 0.1)
    assert any(hidden)
    hidden.clear()
    run.evaluate()
    assert hidden and not any(hidden)

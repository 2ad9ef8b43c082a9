"""Beam search against exhaustive search, on made-up models small enough to list every result."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bilmo.generate.network.search import SearchOptions, search

END, BANNED, WORDS, SOURCE = 0, 1, (2, 3), 3


class Table:
    """Random log-probabilities and attention for each source and each text written so far."""

    def __init__(self, seeds):
        self.seeds = seeds
        self.rows = [(seed, ()) for seed in seeds]
        self.started = False
        self.computed = []

    def log_probs(self, seed, prefix):
        draw = np.random.default_rng([seed, len(prefix), *prefix])
        values = draw.normal(size=4) * 2
        return values - np.log(np.exp(values).sum())

    def attention(self, seed, prefix):
        return np.random.default_rng([seed, 99, *prefix]).dirichlet(np.ones(SOURCE)).astype(np.float32)

    def step(self, words):
        if self.started:
            pairs = zip(self.rows, words.tolist(), strict=True)
            self.rows = [(seed, (*prefix, word)) for (seed, prefix), word in pairs]
        self.started = True
        self.computed += self.rows
        found = [self.log_probs(*row) for row in self.rows], [self.attention(*row) for row in self.rows]
        return torch.tensor(np.array(found[0])), torch.from_numpy(np.array(found[1]))

    def keep(self, rows):
        self.rows = [self.rows[k] for k in rows.tolist()]


def exhaustive(table, seed, longest, options):
    """Every result with its score, best first."""
    found = []
    for length in range(min(options.shortest, longest), longest + 1):
        for words in itertools.product(WORDS, repeat=length):
            path = [*words, END]
            total = math.fsum(table.log_probs(seed, words[:k])[word] for k, word in enumerate(path))
            attention = np.stack([table.attention(seed, words[:k]) for k in range(len(path))])
            found.append((options.score(total, len(path), attention), list(words), total))
    return sorted(found, reverse=True)


OPTIONS = st.builds(
    SearchOptions,
    beam=st.just(40),
    best=st.integers(1, 5),
    shortest=st.integers(0, 3),
    length_penalty=st.sampled_from([0.0, 0.6, 1.0, 3.0]),
    coverage_penalty=st.sampled_from([0.0, 0.5]),
)
SOURCES = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 4)), min_size=1, max_size=4)


@given(SOURCES, OPTIONS)
def test_a_beam_as_wide_as_the_search_space_equals_exhaustive_search(sources, options):
    table = Table([seed for seed, _ in sources])
    results = search(table, [longest for _, longest in sources], options, end=END, banned=[BANNED])
    for (seed, longest), found in zip(sources, results, strict=True):
        expected = exhaustive(table, seed, longest, options)[: options.best]
        assert [one.words for one in found] == [words for _, words, _ in expected]
        assert [one.score for one in found] == pytest.approx([score for score, _, _ in expected])
        assert [one.log_probability for one in found] == pytest.approx([total for _, _, total in expected])
        assert all(one.attention.shape == (len(one.words) + 1, SOURCE) for one in found)


@given(SOURCES, st.integers(1, 4), st.integers(1, 3))
def test_the_results_of_a_source_do_not_depend_on_the_others(sources, beam, best):
    options = SearchOptions(beam=beam, best=best)
    together = search(Table([seed for seed, _ in sources]), [n for _, n in sources], options, end=END, banned=[BANNED])
    for (seed, longest), found in zip(sources, together, strict=True):
        (alone,) = search(Table([seed]), [longest], options, end=END, banned=[BANNED])
        assert [(one.words, one.score) for one in found] == [(one.words, one.score) for one in alone]
        assert len(found) <= best and all(BANNED not in one.words for one in found)


@given(st.integers(0, 10**6), st.integers(0, 6))
def test_a_beam_of_one_is_greedy(seed, longest):
    table = Table([seed])
    ((found,),) = search(table, [longest], SearchOptions(beam=1), end=END, banned=[BANNED])
    words = []
    while len(words) < longest:
        values = table.log_probs(seed, tuple(words))
        values[BANNED] = -np.inf
        if (word := int(values.argmax())) == END:
            break
        words.append(word)
    assert found.words == words


def test_no_step_is_computed_for_a_finished_result():
    draw = random.Random(1)
    for _ in range(20):
        table = Table([draw.randrange(10**6) for _ in range(5)])
        results = search(table, [5] * 5, SearchOptions(beam=3, best=3), end=END, banned=[BANNED])
        assert all(END not in prefix for _, prefix in table.computed)
        for seed, found in zip(table.seeds, results, strict=True):
            steps = [sum(s == seed and len(p) == t for s, p in table.computed) for t in range(6)]
            assert steps[0] == 1 and max(steps) <= 3
            ended = [sum(len(one.words) < t for one in found) for t in range(6)]  # they take places of the beam
            assert all(count + before <= 3 for count, before in zip(steps, ended, strict=True))


def test_impossible_words_are_never_written():
    class Narrow(Table):
        def log_probs(self, seed, prefix):
            return np.array([-1.0, -np.inf, -np.inf, -0.5]) if len(prefix) < 2 else np.array([0.0, *[-np.inf] * 3])

    (found,) = search(Narrow([1]), [9], SearchOptions(beam=9, best=9, length_penalty=0), end=END)
    assert {tuple(one.words): one.log_probability for one in found} == {(): -1.0, (3,): -1.5, (3, 3): -1.0}

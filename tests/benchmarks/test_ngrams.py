"""The 5-gram model that shipped models are judged against is a proper one."""

from __future__ import annotations

import importlib.util
import itertools
import random
import sys
from pathlib import Path

import numpy as np
import pytest

BEGIN, END, WORDS = 0, 1, 8


@pytest.fixture(scope="module")
def ngrams():
    path = Path(__file__).parents[2] / "benchmarks" / "ngrams.py"
    spec = importlib.util.spec_from_file_location("ngrams", path)
    assert spec and spec.loader
    module = sys.modules["ngrams"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sentences():
    """Words follow each other with a preference, so that there is something to learn."""
    draw = random.Random(1)
    found = []
    for _ in range(300):
        sentence = [draw.randrange(3, WORDS)]
        while draw.random() < 0.8:
            sentence.append(draw.choice([3 + (sentence[-1] + 1) % 5, draw.randrange(3, WORDS)]))
        found.append(sentence)
    return found


@pytest.fixture(scope="module")
def model(ngrams, sentences):
    row = itertools.chain.from_iterable([BEGIN] * (ngrams.N - 1) + sentence + [END] for sentence in sentences)
    return ngrams.KneserNey(np.array(list(row)), WORDS)


@pytest.mark.parametrize("before", [(0, 0, 0, 0), (0, 0, 0, 3), (3, 4, 5, 6), (7, 7, 7, 7), (2, 2, 2, 2)])
def test_the_words_after_any_words_share_all_of_the_probability(model, before):
    shares = [np.exp(model.log_probs(np.array([*before, word]), 4)) for word in range(WORDS)]
    assert np.sum(shares) == pytest.approx(1) and min(shares) > 0


def test_first_words_come_about_as_often_as_they_did(model, sentences):
    for word in range(3, WORDS):
        often = sum(sentence[0] == word for sentence in sentences) / len(sentences)
        share = float(np.exp(model.log_probs(np.array([BEGIN] * 4 + [word]), 4))[0])
        assert share == pytest.approx(often, abs=0.02)


def test_it_knows_the_text_it_has_read_better_than_chance(ngrams, model, sentences):
    rows = [np.array(sentence) for sentence in sentences]
    draw = random.Random(2)
    mixed = [np.array(draw.sample(sentence, len(sentence))) for sentence in sentences]
    known, other = (ngrams.perplexity(model, some, BEGIN, END) for some in (rows, mixed))
    assert known < 4 < other

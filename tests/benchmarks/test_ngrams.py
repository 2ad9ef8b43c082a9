"""The 5-gram model, which is the baseline of the included models, is a proper probability model."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path

import numpy as np
import pytest

from bilmo.ids.vocab import Vocab
from bilmo.training.corpus import build

WORDS = "abcde"
VOCAB = Vocab(["<S>", "</S>", "<UNK>", *WORDS])


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
    """Words tend to follow each other in order, so that there is something to learn."""
    draw = random.Random(1)
    found = []
    for _ in range(300):
        sentence = [draw.randrange(5)]
        while draw.random() < 0.8:
            sentence.append(draw.choice([(sentence[-1] + 1) % 5, draw.randrange(5)]))
        found.append([WORDS[place] for place in sentence])
    return found


@pytest.fixture(scope="module")
def corpus(sentences, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ngrams") / "corpus"
    return build(map(" ".join, sentences), "spaces", folder, held_out=0.02, seed=1)


@pytest.fixture(scope="module")
def model(ngrams, corpus):
    return ngrams.KneserNey.of(corpus, VOCAB)


@pytest.mark.parametrize("before", [(0, 0, 0, 0), (0, 0, 0, 3), (3, 4, 5, 6), (7, 7, 7, 7), (2, 2, 2, 2)])
def test_probabilities_of_the_next_word_add_up_to_one(model, before):
    shares = [np.exp(model.log_probs(np.array([*before, word]), 4)) for word in range(len(VOCAB))]
    assert np.sum(shares) == pytest.approx(1) and min(shares) > 0


def test_first_words_are_as_likely_as_they_are_frequent(model, corpus):
    text = corpus.text("train")
    firsts = [corpus.words[id] for id in text.ids[[0, *text.ends[:-1]]]]
    for word in WORDS:
        often = firsts.count(word) / len(firsts)
        share = float(np.exp(model.log_probs(np.array([VOCAB.begin] * 4 + VOCAB.ids([word])), 4))[0])
        assert share == pytest.approx(often, abs=0.02)


def test_it_predicts_its_training_text_better_than_shuffled_text(ngrams, model, sentences):
    draw = random.Random(2)
    mixed = [draw.sample(sentence, len(sentence)) for sentence in sentences]
    known, other = (ngrams.perplexity(model, some, VOCAB) for some in (sentences, mixed))
    assert known < 4 < other

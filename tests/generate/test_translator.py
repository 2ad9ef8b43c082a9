"""What the encoder-decoder can learn, and that its search, its probabilities and its batches agree."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

import bilmo
from bilmo.errors import ConfigError, TextError
from bilmo.generate.folder import load
from bilmo.generate.network.head import END
from bilmo.generate.translator import Translator
from bilmo.tasks.core.spec import Dataset
from bilmo.tasks.core.task_folder import save

from generate_data import sentences, sequences
from task_data import made

SMALL = {"hidden": 32, "target_width": 32, "word_width": 16, "dropout": 0.0, "smoothing": 0.0, "rate": 0.01}


@pytest.fixture(scope="module")
def tiny():
    return bilmo.Embedder(made(0))


@pytest.fixture(scope="module")
def fitted(tiny):
    """A translator that has learned 50 pairs by heart; the numbers at their ends are copied."""
    some = sentences(50)
    return Translator(tiny, vectors="scratch", **SMALL, epochs=40, patience=40, batch=5, stop="loss").fit(
        *some, dev=some
    )


def test_fifty_pairs_are_learned_by_heart(fitted):
    sources, targets = sentences(50)
    assert fitted.best_ > 0.95 and fitted.score(sources, targets) == 1
    assert fitted.predict(sources) == targets
    assert not any(str(k) in fitted.prepared_.words for k in range(50))  # numbers occur once each: they are copied


def test_words_that_were_never_seen_are_copied(fitted):
    assert fitted.predict(["the red dog saw a blue cat 777."]) == ["der rote Hund ein blaue Kater sah 777."]


@pytest.mark.parametrize(("reverse", "epochs"), [(False, 6), (True, 14)])
def test_unseen_sequences_are_copied_and_reversed(reverse, epochs):
    train, dev, test = (sequences(n, seed, reverse=reverse) for n, seed in ((400, 0), (40, 1), (60, 2)))
    task = Translator(None, vectors="scratch", **SMALL, epochs=epochs, patience=epochs, batch=16, seed=2, stop="loss")
    task.fit(*train, dev=dev)
    predicted = task.predict(test[0])
    assert sum(a == " ".join(b) for a, b in zip(predicted, test[1], strict=True)) >= 57


def test_the_score_of_a_hypothesis_is_the_log_probability_without_the_search(fitted):
    sources = [*sentences(6, seed=3)[0], "a zebra saw the cat 9000."]
    results = fitted.hypotheses(sources, beam=6, best=4, length_penalty=0)
    for source, found in zip(sources, results, strict=True):
        assert len(found) == 4 and [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        for one in found:
            (again,) = fitted.log_probability([source], [one.text])
            assert one.log_probability == pytest.approx(again, abs=1e-3)
            assert one.score == one.log_probability
            assert np.log(one.probabilities).sum() == pytest.approx(one.log_probability, abs=1e-3)
            assert one.attention.shape[0] == len(one.tokens) + 1
            assert one.attention.sum(axis=1) == pytest.approx(1, abs=1e-4)


def test_probabilities_of_all_next_words_add_up_to_one(fitted):
    """Those of words that are only in the source included."""
    head, input = fitted.network_.head, fitted.network_.input
    items = fitted.prepared_.items(["the zebra saw a gnu 5.", "a cat"])
    with torch.no_grad():
        memory, final, extra = head._encode(input, items)
        state = head.decoder.first_state(final, memory)
        decoded, _ = head.decoder.step(*head.decoder.inputs(torch.tensor([END, END]), None), memory, state)
        values = head.decoder.log_probabilities(decoded, memory).exp()
    assert [list(some) for some in extra] == [["the", "zebra", "saw", "a", "gnu", "5"], ["a", "cat"]]
    assert values.sum(dim=1).tolist() == pytest.approx([1, 1], abs=1e-5)
    assert values[1, -4:].sum() == 0  # numbers of words that are only in the other source


def test_the_same_answer_whatever_the_batch(fitted):
    sources = [*sentences(20, seed=5)[0], "", "cat", "the " * 40]
    for options in ({"beam": 1}, {"beam": 4, "best": 2}):
        together = fitted.hypotheses(sources, **options)
        for source, found in zip(sources, together, strict=True):
            ((*alone,),) = fitted.hypotheses([source], **options)
            assert [one.text for one in alone] == [one.text for one in found]
            assert [one.score for one in alone] == pytest.approx([one.score for one in found], abs=1e-4)


def test_lengths_and_n_best(fitted):
    source = ["the red cat saw a blue dog 1."]
    (short,) = fitted.hypotheses(source, longest=3, best=2)
    assert all(len(one.tokens) <= 3 for one in short) and len(short) == 2
    (long,) = fitted.hypotheses(source, shortest=15, longest=16, beam=2)
    assert 15 <= len(long[0].tokens) <= 16
    assert fitted.hypotheses(source, beam=1)[0][0].text == fitted.predict(source)[0]


def test_saved_and_loaded(fitted, tmp_path, tiny):
    save(fitted, tmp_path / "out")
    again = load(tmp_path / "out", elmo=tiny)
    sources = sentences(5, seed=8)[0]
    assert isinstance(again, Translator) and again.predict(sources) == fitted.predict(sources)
    assert again.get_params()["hidden"] == 32


@pytest.mark.parametrize(
    "settings",
    [
        {"no_copy": True, "untied": True, "depth": 2, "min_count": 1},
        {"coverage": 1.0, "coverage_penalty": 0.3, "stop": "loss", "smoothing": 0.1, "dropout": 0.3},
        {"elmo_at": "both", "tune": True},
        {"subwords": 60},
    ],
)
def test_every_part_can_be_chosen(tiny, settings):
    task = Translator(tiny, **SMALL | settings, epochs=2).fit(*sentences(30))
    assert len(task.predict(["the red cat", ""])) == 2
    assert 0 <= task.best_ <= 1


def test_the_gradient_is_that_of_the_loss(tiny):
    """In float64 against finite differences, for every kind of parameter of the decoder."""
    task = Translator(
        None, vectors="scratch", hidden=3, target_width=4, word_width=3, coverage=0.7, dropout=0.0, batch=4
    )
    training = task.training(Dataset(*sentences(12)))
    network = task.network_.double()
    items = training.examples.items[:3]
    network.loss(items).backward()
    draw = random.Random(0)
    for name, parameter in network.head.named_parameters():
        flat, at = parameter.detach().view(-1), draw.randrange(parameter.numel())
        before, values = flat[at].item(), []
        for step in (1e-5, -1e-5):
            flat[at] = before + step
            values.append(network.loss(items).item())
        flat[at] = before
        assert parameter.grad.view(-1)[at].item() == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-6), name


def test_chinese_on_both_sides(tiny):
    chinese = ["猫看见狗。", "狗看见猫。", "我爱北京。"] * 8
    english = ["The cat sees a dog.", "The dog sees a cat.", "I love Beijing."] * 8
    for sources, targets in ((chinese, english), (english, chinese)):
        task = Translator(tiny, vectors="scratch", **SMALL, epochs=25, patience=25, batch=6, stop="loss")
        task.fit(sources, targets, dev=(sources[:3], targets[:3]))
        assert task.predict(sources[:3]) == targets[:3]
        assert task.prepared_.chinese == (targets is chinese)


def test_long_texts_are_cut_off_and_reported(tiny):
    sources, targets = sentences(20)
    sources[3], targets[5] = "the " * 30 + ".", "der " * 40 + "."
    task = Translator(tiny, **SMALL, epochs=1, source_limit=20, target_limit=15)
    started = next(task.events(Dataset(sources, targets)))
    assert any(
        "1 sources have more than 20 tokens" in note and "pair 4; the longest has 31" in note for note in started.notes
    )
    assert any("1 targets have more than 15 tokens" in note and "pair 6" in note for note in started.notes)
    assert task.prepared_.longest == 15


def test_mistakes_have_clear_errors(tiny, fitted):
    some = sentences(10)
    cases = [
        (ConfigError, "beam is 0", lambda: Translator(tiny, beam=0).fit(*some)),
        (ConfigError, "smoothing is 1", lambda: Translator(tiny, smoothing=1.0).fit(*some)),
        (ConfigError, "target_lang is 'xx'", lambda: Translator(tiny, target_lang="xx").fit(*some)),
        (ConfigError, "shortest is 9, above longest", lambda: Translator(tiny, shortest=9, longest=3).fit(*some)),
        (TextError, "every target word occurs less than 99", lambda: Translator(tiny, min_count=99).fit(*some)),
        (TextError, "target 2 is 3", lambda: Translator(tiny).fit(["a", "b"], ["a", 3])),
        (ConfigError, "beam is 0", lambda: fitted.hypotheses(["a"], beam=0)),
        (ConfigError, "reads whole words", lambda: Translator(tiny, subwords=50, target_model="en").fit(*some)),
        (ConfigError, "best is 0", lambda: fitted.hypotheses(["a"], best=0)),
        (TextError, "found one string", lambda: fitted.predict("a")),
    ]
    for kind, message, call in cases:
        with pytest.raises(kind) as error:
            call()
        assert message in str(error.value)

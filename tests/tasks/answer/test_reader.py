"""Answering questions: what can be learned is learned, and every answer is a part of its context, in any batch."""

from __future__ import annotations

import pickle
import random

import pytest
import sklearn.base
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bilmo.errors import BilmoError, ConfigError, TextError
from bilmo.store.vectors_file import Vectors
from bilmo.tasks import folder
from bilmo.tasks.answer import task as task_of_answers
from bilmo.tasks.answer.head import Scores
from bilmo.tasks.answer.reader import Reader
from bilmo.tasks.answer.settings import OVERLAP, WINDOW
from bilmo.tasks.core.events import Epoch, Started
from bilmo.tasks.core.spec import Dataset
from bilmo.tasks.data.squad import Question, Span

from task_data import questions

SMALL = {"hidden": 8, "dropout": 0.0, "rate": 0.01, "batch": 16}
NEW = [*questions(10, seed=9)[0], ("", "What?"), ("cat", ""), ("", ""), ("漢字 🙂 — naïve", "What is 漢字?")]


@pytest.fixture(scope="module")
def fitted(tiny):
    """With questions that have no answer."""
    return Reader(tiny, **SMALL, epochs=2, vectors="scratch").fit(*questions(40, answered=0.7))


def test_it_learns_to_compare_question_and_context():
    """Which of two colours is asked for depends on the question."""
    patient = {"hidden": 24, "word_width": 24, "dropout": 0.0, "rate": 0.02, "batch": 16, "epochs": 40, "patience": 40}
    task = Reader(None, vectors="scratch", **patient)
    events = task.events(Dataset(*questions(120)), dev=Dataset(*questions(40, seed=3)))
    assert any(event.value > 0.95 for event in events if isinstance(event, Epoch))


def nonsense(number):
    """Contexts with random answers, which can only be memorised; every fifth question has none."""
    draw = random.Random(5)
    asked, answers = [], []
    for k in range(number):
        words = [f"w{draw.randrange(80)}" for _ in range(draw.randint(3, 8))]
        first = draw.randrange(len(words))
        last = draw.randrange(first, len(words))
        begin = len(" ".join([*words[:first], ""]))
        text = " ".join(words[first : last + 1])
        asked.append((" ".join(words), f"w{draw.randrange(80)} w{draw.randrange(80)}"))
        answers.append(None if k % 5 == 0 else Span(begin, begin + len(text), text))
    return asked, answers


@pytest.mark.parametrize("elmo_at", ["input", "output", "both"])
def test_it_overfits_fifty_examples(tiny, elmo_at):
    words = Vectors([f"w{k}" for k in range(80)], torch.randn(80, 48, generator=torch.manual_seed(1)).numpy())
    patient = {"hidden": 24, "dropout": 0.0, "rate": 0.01, "batch": 50, "epochs": 200, "patience": 200}
    task = Reader(tiny, vectors=words, elmo_at=elmo_at, **patient)
    data = Dataset(*nonsense(50))
    assert any(isinstance(event, Epoch) and event.value == 1 for event in task.events(data, dev=data))


@pytest.mark.parametrize(
    "more", [{"elmo_at": "both", "chars": 3}, {"elmo_at": "output", "vectors": "scratch"}, {"tune": True}]
)
def test_predictions_do_not_depend_on_batch_and_order(tiny, more):
    task = Reader(tiny, **SMALL, epochs=1, **more).fit(*questions(30, answered=0.7))
    together, shares = task.predict(NEW), task.confidence(NEW)
    alone, shares_alone = [task.predict([one])[0] for one in NEW], [task.confidence([one])[0] for one in NEW]
    assert together == alone == task.predict(NEW[::-1])[::-1]
    # Layers are kept as float16, so a difference in the last bit of float32 can become one of 1e-3.
    assert all(a == pytest.approx(b, abs=2e-3) for a, b in zip(shares, shares_alone, strict=True))
    assert together[10] is None and together[12] is None  # contexts without tokens


TEXTS = st.text("ab .\n\u00a0\u3000é🙂漢字’-\u0301", max_size=30)


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), texts=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3))
def test_every_answer_is_a_part_of_its_context(fitted, seed, texts):
    """Also with random, extreme weights: `context[begin:end]` is the answer, and it does not end before it starts."""
    task = Reader.restore(fitted.settings_, fitted.prepared_, fitted.words_, fitted.elmo)
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in task.network_.head.parameters():
            parameter.copy_(torch.randn_like(parameter) * 5)
    for (context, _), answer in zip(texts, task.predict(texts), strict=True):
        if answer is not None:
            assert 0 <= answer.begin < answer.end <= len(context)
            assert context[answer.begin : answer.end] == answer.text == answer.text.strip()


@given(
    scores=st.integers(1, 8).flatmap(
        lambda n: st.lists(st.tuples(*[st.floats(-50, 50, width=32)] * 2), min_size=n, max_size=n)
    ),
    padding=st.integers(0, 3),
    longest=st.integers(1, 10),
)
def test_the_best_legal_span_and_the_sum_over_all(scores, padding, longest):
    low = [(-1e9, -1e9)] * padding
    starts, ends = torch.tensor([*scores, *low]).T.unsqueeze(1)  # (1, T) each
    spans = {(i, j): scores[i][0] + scores[j][1] for i in range(len(scores)) for j in range(i, len(scores))}
    ((score, first, last),) = Scores(starts, ends).best(longest)
    legal = {span: value for span, value in spans.items() if span[1] - span[0] < longest}
    assert (first, last) in legal and score == pytest.approx(max(legal.values()), abs=1e-3)
    expected = torch.logsumexp(torch.tensor(list(spans.values())), dim=0)
    assert Scores(starts, ends).total().item() == pytest.approx(expected.item(), abs=1e-3)


def test_a_long_context_is_read_in_windows(tiny, monkeypatch):
    """The answer is far beyond the first window, in training and in prediction; nothing is cut."""
    monkeypatch.setattr(task_of_answers, "WINDOW", 40)
    monkeypatch.setattr(task_of_answers, "OVERLAP", 10)
    filler = "and then a cow saw the dog . " * 8
    long = [f"{filler} the {word} is {colour} {filler}" for word, colour in (("cat", "red"), ("cat", "blue"))]
    asked = [(context, "what is the cat ?") for context in long]
    patient = {"hidden": 8, "dropout": 0.0, "rate": 0.02, "batch": 2, "epochs": 25, "patience": 25, "longest": 5}
    task = Reader(tiny, vectors="scratch", **patient).fit(asked, ["red", "blue"], dev=(asked, ["red", "blue"]))
    item = task.prepared_.items(asked)[0]
    tokens = len(item.offsets)
    assert tokens > 3 * 40 and len(item.windows) == 5
    covered = {k for first, size in item.windows for k in range(first, first + size)}
    assert covered == set(range(tokens)) and all(size <= 40 for _, size in item.windows)
    assert [answer.text for answer in task.predict(asked)] == ["red", "blue"]
    assert task.predict(asked)[0].begin == long[0].index("red")
    assert 0 < task.confidence(asked[:1])[0][0] <= 1


@given(st.integers(0, 3 * WINDOW), st.integers(1, OVERLAP), st.data())
def test_every_possible_answer_is_within_a_window(fitted, tokens, size, data):
    item = fitted.prepared_.items([("a " * tokens, "b")])[0]
    assert sum(size for _, size in item.windows) >= tokens == len(item.offsets)
    if tokens >= size:
        first = data.draw(st.integers(0, tokens - size))
        assert any(start <= first and first + size <= start + length for start, length in item.windows)


def test_the_same_seed_gives_the_same_result(tiny):
    first, second = (Reader(tiny, **(SMALL | {"dropout": 0.5}), epochs=2).fit(*questions(30)) for _ in range(2))
    assert first.confidence(NEW) == second.confidence(NEW)


def test_answers_touch_tokens(fitted):
    context = "In the 1990s, U.S. troops"
    tokens = fitted.prepared_.items([(context, "?")], [[Span(7, 11, "1990"), Span(14, 18, "U.S.")]])[0]
    words = [token for sentence in tokens.text for token in sentence]
    assert [words[first : last + 1] for first, last in tokens.answers] == [["1990s"], ["U.S."]]


def test_saved_loaded_pickled_and_cloned(fitted, tiny, tmp_path):
    folder.save(fitted, tmp_path / "task")
    loaded = folder.load(tmp_path / "task", elmo=tiny)
    assert type(loaded) is Reader and loaded.prepared_.no_answer
    assert loaded.predict(NEW) == fitted.predict(NEW) == pickle.loads(pickle.dumps(fitted)).predict(NEW)
    assert sklearn.base.clone(fitted).get_params() == fitted.get_params() and fitted.get_params()["hidden"] == 8


def test_answers_may_be_given_in_many_ways(fitted):
    asked = [("the cat is red", "what?")] * 5
    given = ["cat", None, ["cat", "red"], Span(4, 7, "cat"), [(11, 14, "red")]]
    found = fitted.prepared_.check(asked, given)
    cat, red = Span(4, 7, "cat"), Span(11, 14, "red")
    assert found == [[cat], [], [cat, red], [cat], [red]]
    assert 0 <= fitted.score(asked, given) <= 1


def test_without_unanswerable_questions_there_is_always_an_answer(tiny):
    task = Reader(tiny, **SMALL, epochs=1).fit(*questions(20))
    assert all(task.predict(questions(20, seed=2)[0]))
    assert task.prepared_.unseen([[]]) == {"no answer": 1}


def test_the_dev_set_has_other_contexts(tiny):
    asked = [Question(f"the cat {k // 4} is red", f"what {k}?") for k in range(80)]
    started = next(Reader(tiny, **SMALL).events(Dataset(asked, ["red"] * 80)))
    assert isinstance(started, Started) and started.dev % 4 == 0 and started.dev >= 8


def test_answers_that_are_too_long_to_learn_are_counted(tiny):
    long = "a " * (OVERLAP + 10)
    asked, answers = questions(20)
    given = Dataset([*asked, (long, "?")], [*answers, [Span(0, len(long.strip()), long.strip())]])
    started = next(Reader(tiny, **SMALL).events(given, dev=given))
    assert f"1 questions are not learned: their answers have more than {OVERLAP} tokens" in started.notes
    assert Reader(tiny, **(SMALL | {"batch": 1}), epochs=1).fit(given.examples, given.answers).predict([(long, "?")])


def test_mistakes_have_clear_errors(tiny, fitted):
    good = [("the cat", "what?")]
    cases = [
        (TextError, "an example is 'text'; it must be a pair", lambda: Reader(tiny).fit(["text"], ["a"])),
        (TextError, "it must be a pair of two strings", lambda: fitted.predict([(["the"], "what?")])),
        (TextError, "the answer 'dog' does not occur", lambda: Reader(tiny).fit(good, ["dog"])),
        (TextError, "outside the context, which has 7", lambda: Reader(tiny).fit(good, [Span(7, 8, "x")])),
        (TextError, "but the context has 'the'", lambda: Reader(tiny).fit(good, [Span(0, 3, "cat")])),
        (TextError, "an answer is 3; it must be", lambda: Reader(tiny).fit(good, [[3]])),
        (TextError, "no question has an answer", lambda: Reader(tiny).fit(good, [None])),
        (TextError, "has 20,001 tokens; the limit is 20,000", lambda: fitted.predict([("a " * 20_001, "what?")])),
        (TextError, "question that starts with", lambda: fitted.predict([("a", "what " * 501)])),
        (ConfigError, "longest is 126; it must be from 1 to 125", lambda: Reader(tiny, longest=126).fit(good, ["cat"])),
        (TextError, "lang is 'xx'", lambda: Reader(tiny, lang="xx").fit(good, ["cat"])),
        (BilmoError, "is not fitted", lambda: Reader(tiny).predict(good)),
    ]
    for kind, message, run in cases:
        with pytest.raises(kind) as error:
            run()
        assert message in str(error.value)

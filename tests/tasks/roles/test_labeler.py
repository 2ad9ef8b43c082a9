"""Role labelling learns what can be learned, gives only legal frames, and the same ones in any batch."""

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
from bilmo.tasks.core.events import Epoch, Started
from bilmo.tasks.core.spec import Dataset
from bilmo.tasks.data import spans
from bilmo.tasks.data.frames import Frame, Marked
from bilmo.tasks.roles.labeler import RoleLabeler

from task_data import clauses

SMALL = {"hidden": 12, "dropout": 0.0, "rate": 0.01, "batch": 16}
NEW = [*clauses(12, seed=9)[0], [], ["cow"], ["漢字", "saw"]]


def marked(sentences, frames):
    return [Marked(tokens, [frame.predicate for frame in one]) for tokens, one in zip(sentences, frames, strict=True)]


@pytest.fixture(scope="module")
def fitted(tiny):
    return RoleLabeler(tiny, **SMALL, epochs=25, patience=25, vectors="scratch").fit(*clauses(60))


def test_it_learns_predicates_and_roles_together(fitted):
    sentences, frames = clauses(30, seed=3)
    assert fitted.score(sentences, frames) > 0.9  # predicates are found
    assert fitted.score(marked(sentences, frames), frames) > 0.9
    found = fitted.predict([["the", "cow"], "then cat saw red dog .".split()])
    assert found == [[], [Frame(2, ["B-TMP", "B-A0", "B-V", "B-A1", "I-A1", "O"])]]
    assert fitted.labels_ == ["A0", "A1", "TMP", "V"]


def nonsense(number):
    """Sentences with random frames, which can only be memorised."""
    draw = random.Random(5)
    sentences, answers = [], []
    for _ in range(number):
        words = [f"w{draw.randrange(80)}" for _ in range(draw.randint(2, 6))]
        frames = []
        for index in sorted(draw.sample(range(len(words)), k=draw.randint(1, 2))):
            others = [("P", k, k) for k in range(len(words)) if k != index and draw.random() < 0.4]
            frames.append(Frame(index, spans.write([*others, ("V", index, index)], len(words), "BIO")))
        sentences.append(words)
        answers.append(frames)
    return sentences, answers


@pytest.mark.parametrize("elmo_at", ["input", "output", "both"])
def test_it_overfits_fifty_examples(tiny, elmo_at):
    words = Vectors([f"w{k}" for k in range(80)], torch.randn(80, 48, generator=torch.manual_seed(1)).numpy())
    sentences, frames = nonsense(50)
    patient = {"hidden": 32, "dropout": 0.0, "rate": 0.01, "batch": 50, "epochs": 200, "patience": 200, "depth": 2}
    task = RoleLabeler(tiny, vectors=words, elmo_at=elmo_at, **patient)
    data = Dataset(sentences, frames)  # not marked: the predicates are learned too
    assert any(isinstance(event, Epoch) and event.value == 1 for event in task.events(data, dev=data))


@pytest.mark.parametrize(
    "more", [{"elmo_at": "output", "vectors": "scratch"}, {"elmo_at": "both", "chars": 3}, {"tune": True}]
)
def test_predictions_do_not_depend_on_batch_and_order(tiny, more):
    task = RoleLabeler(tiny, **SMALL, epochs=3, **more).fit(*clauses(40))
    asked = [*NEW, *(Marked(tokens, range(len(tokens))) for tokens in NEW)]
    together, shares = task.predict(asked), task.confidence(asked)
    alone, shares_alone = [task.predict([one])[0] for one in asked], [task.confidence([one])[0] for one in asked]
    assert together == alone == task.predict(asked[::-1])[::-1]
    # Layers are kept as float16, so a difference in the last bit of float32 can become one of 1e-3.
    assert all(a == pytest.approx(b, abs=2e-3) for a, b in zip(shares, shares_alone, strict=True))
    assert [len(found) for found in together[len(NEW) :]] == [len(tokens) for tokens in NEW]


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), lengths=st.lists(st.integers(0, 9), min_size=1, max_size=4))
def test_only_legal_frames_are_predicted(fitted, seed, lengths):
    """With random, extreme weights too; every predicate has B-V, and no other word has it."""
    task = RoleLabeler.restore(fitted.settings_, fitted.prepared_, fitted.words_, fitted.elmo)
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in task.network_.head.parameters():
            if parameter.requires_grad:
                parameter.copy_(torch.randn_like(parameter) * 20)
    draw = random.Random(seed)
    sentences = [draw.choices(["red", "cat", "saw", "?"], k=length) for length in lengths]
    asked = [Marked(tokens, [k for k in range(len(tokens)) if draw.random() < 0.5]) for tokens in sentences]
    for one, frames in zip([*sentences, *asked], task.predict([*sentences, *asked]), strict=True):
        tokens = one.tokens if isinstance(one, Marked) else one
        if isinstance(one, Marked):
            assert [frame.predicate for frame in frames] == one.predicates
        for frame in frames:
            assert len(frame.tags) == len(tokens) and spans.scheme_of([frame.tags]) == ("BIO", [])
            assert [k for k, tag in enumerate(frame.tags) if tag == "B-V"] == [frame.predicate]


def test_saved_loaded_pickled_and_cloned(fitted, tiny, tmp_path):
    folder.save(fitted, tmp_path / "task")
    loaded = folder.load(tmp_path / "task", elmo=tiny)
    assert type(loaded) is RoleLabeler
    assert loaded.predict(NEW) == fitted.predict(NEW) == pickle.loads(pickle.dumps(fitted)).predict(NEW)
    assert sklearn.base.clone(fitted).get_params() == fitted.get_params() and fitted.get_params()["depth"] == 3


def test_the_same_seed_gives_the_same_result(tiny):
    first, second = (RoleLabeler(tiny, **(SMALL | {"dropout": 0.5}), epochs=2).fit(*clauses(30)) for _ in range(2))
    assert first.confidence(NEW) == second.confidence(NEW)


def test_a_long_sentence_full_of_predicates(fitted):
    long = ["cat", "saw", "dog", "."] * 150
    (found,) = fitted.predict([Marked(long, range(1, 600, 4))])
    assert [frame.predicate for frame in found] == list(range(1, 600, 4))


def test_batches_have_fewer_sentences_with_many_predicates(fitted):
    tokens = ["saw"] * 10
    frames = [Frame(k, ["B-V" if j == k else "O" for j in range(10)]) for k in range(10)]
    (item,) = fitted.prepared_.items([tokens], [frames])
    assert fitted.network_.head.cost(item) == 110


def test_peculiarities_of_the_data_are_reported(tiny):
    sentences, frames = clauses(20)
    frames[1] = [Frame(frame.predicate, ["O" if tag == "B-V" else tag for tag in frame.tags]) for frame in frames[1]]
    assert frames[1]
    first = next(RoleLabeler(tiny, **SMALL).events(Dataset(sentences, frames), dev=Dataset(sentences, frames)))
    assert isinstance(first, Started) and "V" not in first.labels and first.labels["A0"] > 0
    assert "predicates do not have the tag B-V" in "\n".join(first.notes)


def test_mistakes_have_clear_errors(tiny, fitted):
    one, good = [["cat", "saw"]], [[Frame(1, ["B-A0", "B-V"])]]
    cases = [
        (
            TextError,
            "sentence 0: a predicate is word 2, outside",
            lambda: RoleLabeler(tiny).fit(one, [[(2, ["O", "O"])]]),
        ),
        (
            TextError,
            "sentence 0: the predicate 'saw' (word 1) has 1",
            lambda: RoleLabeler(tiny).fit(one, [[(1, ["O"])]]),
        ),
        (TextError, "has the tag 'I-A0'", lambda: RoleLabeler(tiny).fit(one, [[(1, ["I-A0", "B-V"])]])),
        (TextError, "it must be a list of frames", lambda: RoleLabeler(tiny).fit(one, [[3]])),
        (TextError, "it must be a list of frames", lambda: RoleLabeler(tiny).fit(one, [[("1", ["O", "O"])]])),
        (TextError, "no predicates; there is nothing", lambda: RoleLabeler(tiny).fit(one, [[]])),
        (TextError, "no roles but V", lambda: RoleLabeler(tiny).fit(one, [[(1, ["O", "B-V"])]])),
        (TextError, "it must be a list of words", lambda: RoleLabeler(tiny).fit(["cat saw"], good)),
        (TextError, "sentence 0: a predicate is word 7", lambda: fitted.predict([Marked(["saw"], [7])])),
        (TextError, "accepted: at most 500", lambda: RoleLabeler(tiny).fit([["a"] * 600], [[(0, many())]])),
        (ConfigError, "depth is 1; it must be from 2", lambda: RoleLabeler(tiny, depth=1).fit(one, good)),
        (TextError, "lang is 'xx'", lambda: RoleLabeler(tiny, lang="xx").fit(one * 2, good * 2)),
        (BilmoError, "is not fitted", lambda: RoleLabeler(tiny).predict(one)),
    ]
    for kind, message, run in cases:
        with pytest.raises(kind) as error:
            run()
        assert message in str(error.value)


def many():
    return ["B-V", *(f"B-R{k}" for k in range(599))]

"""Tasks learn what can be learned, and predict the same in any batch; the same seed gives the same result."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
import torch

import bilmo
from bilmo.errors import BilmoError, ConfigError, TextError
from bilmo.store import checkpoint
from bilmo.store.vectors_file import Vectors
from bilmo.tasks.classify.classifier import Classifier
from bilmo.tasks.classify.settings import HEADS as CLASSIFY
from bilmo.tasks.classify.task import PreparedClassify, TextItem
from bilmo.tasks.core.events import Epoch, Finished, Progress, Started
from bilmo.tasks.core.examples import split_off
from bilmo.tasks.core.loop import batches
from bilmo.tasks.core.measure import by_label
from bilmo.tasks.core.settings import Settings, check_settings
from bilmo.tasks.core.spec import Dataset
from bilmo.tasks.data import spans
from bilmo.tasks.tag.settings import HEADS as TAG
from bilmo.tasks.tag.tagger import Tagger

from task_data import COLOURS, sentences, texts

SMALL = {"hidden": 12, "dropout": 0.0, "rate": 0.02, "batch": 16}
RANDOM = np.random.default_rng(0)
GIVEN = Vectors(["red", "green", "blue", "cat", "dog", "the"], RANDOM.normal(size=(6, 5)).astype(np.float32))


NONSENSE = [f"w{k}" for k in range(80)]
WIDE = Vectors(NONSENSE, RANDOM.normal(size=(80, 48)).astype(np.float32))


def nonsense(number):
    """Texts with random answers, which can only be memorised."""
    draw = random.Random(3)
    made = [draw.sample(NONSENSE, k=draw.randint(2, 6)) for _ in range(number)]
    return made, [draw.choice(("x", "y", "z")) for _ in made], [[draw.choice("PQR") for _ in words] for words in made]


MEMORISE = {"hidden": 32, "dropout": 0.0, "rate": 0.03, "batch": 50, "epochs": 150, "patience": 150, "l2": 0.0}


@pytest.mark.parametrize(
    ("head", "elmo_at"),
    [(head, at) for head in CLASSIFY for at in ("input", "both") if (head, at) != ("linear", "both")],
)
def test_every_head_of_a_classifier_overfits(tiny, head, elmo_at):
    some, labels, _ = nonsense(50)
    assert reaches(Classifier(tiny, vectors=WIDE, head=head, elmo_at=elmo_at, **MEMORISE), some, labels, 1.0)


@pytest.mark.parametrize("head", TAG)
def test_every_head_of_a_tagger_overfits(tiny, head):
    some, _, tags = nonsense(50)
    if head == "linear":  # it sees each token alone, so it can memorise one tag per word
        tags = [["PQR"[int(word[1:]) * 7 % 3] for word in words] for words in some]
    assert reaches(Tagger(tiny, vectors=WIDE, head=head, **MEMORISE), some, tags, 1.0)


def reaches(task, some, answers, enough):
    """Whether training reaches this value on the training examples."""
    for event in task.events(Dataset(some, answers), dev=Dataset(some, answers)):
        if isinstance(event, Epoch) and event.value >= enough:
            return True
    return False


def fitted(tiny, kind, **settings):
    some, answers = texts(40) if kind is Classifier else sentences(40)
    return kind(tiny, **(SMALL | {"epochs": 4} | settings)).fit(some, answers)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (Classifier, {"head": "mean", "elmo_at": "both"}),
        (Classifier, {"head": "bilstm", "batch_norm": True, "elmo_at": "both"}),
        (Classifier, {"head": "attention", "chars": 3, "vectors": "scratch"}),
        (Classifier, {"head": "max", "tune": True}),
        (Tagger, {"elmo_at": "both", "vectors": GIVEN, "chars": 3}),
        (Tagger, {"tune": True}),
        (Tagger, {"head": "linear"}),
    ],
)
def test_predictions_do_not_depend_on_batch_and_order(tiny, kind, settings):
    task = fitted(tiny, kind, **settings)
    some = (texts(12, seed=9) if kind is Classifier else sentences(12, seed=9))[0]
    some.append("" if kind is Classifier else [])
    together = task.predict_proba(some)
    alone = [task.predict_proba([one])[0] for one in some]
    backwards = list(task.predict_proba(some[::-1]))[::-1]
    for a, b, c in zip(together, alone, backwards, strict=True):
        assert np.allclose(a, b, atol=1e-5) and np.allclose(a, c, atol=1e-5)
    assert list(task.predict(some)) == [task.predict([one])[0] for one in some]


@pytest.mark.parametrize("head", TAG)
@pytest.mark.parametrize("scheme", ["IO", "IOB1", "BIO", "BIOES"])
def test_a_tagger_predicts_legal_tags_in_the_scheme_of_its_training_data(tiny, head, scheme):
    some, tags = sentences(30)
    tags = [spans.write(spans.spans(one), len(one), scheme) for one in tags]
    task = Tagger(tiny, head=head, **SMALL, epochs=2).fit(some, tags)
    assert task.scheme_ == scheme
    with torch.no_grad():  # extreme weights
        for parameter in task.network_.head.parameters():
            parameter.copy_(torch.randn_like(parameter) * 50)
    new = sentences(30, seed=5)[0]
    for tokens, answer in zip(new, task.predict(new), strict=True):
        assert len(answer) == len(tokens)
        assert answer == spans.write(spans.spans(answer), len(answer), scheme)


@pytest.mark.parametrize("kind", [Classifier, Tagger])
def test_the_same_seed_gives_the_same_result(tiny, kind):
    some = (texts(10, seed=9) if kind is Classifier else sentences(10, seed=9))[0]
    torch.manual_seed(5)
    first = fitted(tiny, kind, dropout=0.5)
    torch.manual_seed(6)
    before = torch.rand(3)
    torch.manual_seed(6)
    second = fitted(tiny, kind, dropout=0.5)
    assert torch.equal(torch.rand(3), before)  # the caller's random numbers stay as they are
    other = fitted(tiny, kind, dropout=0.5, seed=2)
    flat = [np.concatenate([np.ravel(row) for row in task.predict_proba(some)]) for task in (first, second, other)]
    assert np.array_equal(flat[0], flat[1])
    assert not np.allclose(flat[0], flat[2])


@pytest.mark.parametrize(
    "settings", [{}, {"tune": True, "head": "bilstm", "batch_norm": True}], ids=["frozen", "tuned"]
)
def test_an_interrupted_run_resumes_to_the_same_result(tiny, tmp_path, settings):
    some, labels = texts(40)
    settings = SMALL | {"dropout": 0.5, "epochs": 5} | settings
    whole = Classifier(tiny, **settings).fit(some, labels)
    path = tmp_path / "checkpoint"
    broken = Classifier(tiny, **settings).training(Dataset(some, labels))
    for event in broken.events():
        if isinstance(event, Epoch) and event.number == 2:
            checkpoint.write(path, broken.loop.checkpoint())
            break
    resumed = Classifier(tiny, **settings)
    training = resumed.training(Dataset(some, labels))
    training.loop.resume(checkpoint.read(path, Progress))
    assert [e.number for e in training.events() if isinstance(e, Epoch)] == [3, 4, 5]
    assert np.array_equal(whole.predict_proba(some), resumed.predict_proba(some))


def test_ctrl_c_keeps_the_best_epoch(tiny, monkeypatch):
    some, labels = texts(40)
    task = Classifier(tiny, **SMALL, epochs=30)
    evaluations = itertools.count()

    def measured(true, answers):
        number = next(evaluations)
        if number == 3:
            raise KeyboardInterrupt
        return replace(by_label(true, answers), value=(0.2, 0.9, 0.4)[number])

    monkeypatch.setattr(PreparedClassify, "measure", lambda self, true, answers: measured(true, answers))
    with pytest.warns(UserWarning, match="best epoch so far"):
        task.fit(some, labels)
    assert task.best_ == 0.9
    short = Classifier(tiny, **SMALL, epochs=2)
    values = itertools.count(1)
    monkeypatch.setattr(PreparedClassify, "measure", lambda self, t, a: replace(by_label(t, a), value=next(values)))
    short.fit(some, labels)  # it ends with its second epoch, the best one of the other task
    assert np.allclose(task.predict_proba(some), short.predict_proba(some), atol=1e-6)


def test_ctrl_c_before_the_first_evaluation_is_passed_on(tiny, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    task = Classifier(tiny, **SMALL)
    monkeypatch.setattr(PreparedClassify, "measure", stop)
    with pytest.raises(KeyboardInterrupt):
        task.fit(*texts(20))


def test_training_stops_early_and_keeps_the_best_epoch(tiny, monkeypatch):
    task = Classifier(tiny, **SMALL, epochs=30, patience=2)
    values = iter([0.0, 0.0, 0.0, 0.5, 0.4, 0.5])
    score = by_label(["a"], ["a"])
    monkeypatch.setattr(PreparedClassify, "measure", lambda *_: replace(score, value=next(values)))
    *_, end = task.events(Dataset(*texts(20)))
    assert isinstance(end, Finished)
    assert (end.epoch, end.value, end.why) == (4, 0.5, "stopped early: no improvement in the last 2 epochs")


def test_peculiarities_of_the_data_are_reported(tiny):
    some, labels = texts(44)
    labels = ["rare" if k == 0 else "animal" for k in range(44)]
    first = next(
        Classifier(tiny, **SMALL).events(Dataset([*some, ""], [*labels, "animal"]), dev=Dataset(["x"], ["new"]))
    )
    assert isinstance(first, Started)
    notes = "\n".join(first.notes)
    assert "animal occurs 44 times, rare 1 times" in notes
    assert "do not occur in the training examples: new" in notes
    assert "1 texts have no tokens" in notes
    tags = [["B-A", "O"], ["I-B", "B-B"]]
    first = next(Tagger(tiny, **SMALL).events(Dataset([["a", "b"], ["c", "d"]], tags), dev=Dataset([["a"]], [["O"]])))
    assert "1 tag violates the scheme BIO (it is read as conlleval reads it): I-" in "\n".join(first.notes)


def test_tags_outside_the_training_data_are_counted(tiny):
    some, tags = sentences(20)
    task = Tagger(tiny, **SMALL, epochs=1).fit(some, tags)
    assert task.prepared_.unseen([["O", "I-PET", "B-NEW", "S-FARM"], ["NOUN"], ["I"]]) == {"I": 1, "NEW": 1, "NOUN": 1}
    bare = Tagger(tiny, **SMALL, epochs=1).fit(some, [[tag[0] for tag in one] for one in tags])
    assert bare.prepared_.unseen([["O", "B", "I", "E"]]) == {} and bare.prepared_.unseen([["B-PET"]]) == {"PET": 1}


def test_a_test_set_in_another_scheme_gets_the_same_score(tiny):
    some, tags = sentences(30)
    task = Tagger(tiny, **SMALL, epochs=8).fit(some, tags)
    other = [spans.write(spans.spans(one), len(one), "BIOES") for one in tags]
    answers = task.predict(some)
    assert task.prepared_.measure(other, answers) == task.prepared_.measure(tags, answers)


def test_word_vectors_of_every_kind(tiny):
    some, labels = texts(40)
    for vectors in (GIVEN, "scratch"):
        task = Classifier(None, vectors=vectors, **SMALL, epochs=12, elmo_at="input").fit(some, labels)
        assert task.score(some, labels) > 0.9
        assert task.mixes_ == []
    capital = [text.upper() for text in some]
    assert Classifier(None, vectors=GIVEN, **SMALL, epochs=12).fit(capital, labels).score(some, labels) > 0.9


def test_given_vectors_stay_fixed_and_the_unknown_word_is_trained(tiny):
    task = Classifier(None, vectors=GIVEN, **SMALL, epochs=3).fit(*texts(40))
    table = task.network_.input.table
    assert np.array_equal(table.weight.detach().numpy()[3:], GIVEN.values)
    assert not np.allclose(table.marks.detach().numpy()[2], GIVEN.values.mean(axis=0))


def test_tuning_changes_a_copy_of_the_model_only(tiny):
    before = {name: value.clone() for name, value in tiny.bundle.weights.items()}
    task = Classifier(tiny, **SMALL, epochs=3, tune=True, tune_rate=0.01).fit(*texts(40))
    learned = task.network_.input.tuned.learned().weights
    assert all(torch.equal(before[name], value) for name, value in tiny.bundle.weights.items())
    assert not any(torch.equal(before[name], learned[name]) for name in before if name.endswith("recur"))


@pytest.mark.parametrize("mix", ["weighted", "top", "mean", "concat", 1, (0, 2), "0,1"])
def test_every_mix(tiny, mix):
    task = Classifier(tiny, mix=mix, **SMALL, epochs=1).fit(*texts(20))
    assert bool(task.mixes_) == (mix == "weighted")
    assert task.network_.input.width == (32 if mix == "concat" else 16)


def test_a_strong_l2_keeps_layers_equal(tiny):
    free, held = (Classifier(tiny, **SMALL, epochs=6, l2=l2).fit(*texts(40)).mixes_[0].shares for l2 in (0.0, 100.0))
    assert max(held) - min(held) < 0.01 < max(free) - min(free)
    assert sum(free) == pytest.approx(1)


def test_a_document_of_ten_thousand_words_and_none(tiny):
    some, labels = texts(20)
    long = " ".join(random.Random(0).choices(COLOURS, k=10_000))
    task = Classifier(tiny, head="bilstm", **SMALL, epochs=1).fit(
        [*some, long, "", " "], [*labels, "colour", "animal", "animal"]
    )
    assert set(task.predict([long, "", "\n"])) <= {"colour", "animal"}


def test_chinese_is_split_into_words(tiny):
    some = ["我爱北京天安门。天气很好！", "他不喜欢这本书。", "北京很大。", "这本书很好。"] * 5
    task = Classifier(tiny, **SMALL, epochs=1).fit(some, ["a", "b", "a", "b"] * 5)
    assert task.lang_ == "zh"
    split = task.prepared_.items(["我爱北京天安门。天气很好！"])[0].text
    assert [len(sentence) > 2 for sentence in split] == [True, True]
    assert "北京" in split[0]
    assert task.predict([["北京", "很", "大"], "北京很大"]).shape == (2,)  # split already, or not


@pytest.mark.parametrize(
    ("said", "texts", "lang", "way"),
    [
        ("west", ["It's the end of it.", "He was in the end."], "auto", "west"),
        ("unknown", ["It's the end of it.", "He was in the end."], "auto", "en"),
        ("spaces", ["It's the end of it.", "He was in the end."], "auto", "en"),
        ("west", ["It 's the end of it .", "He was in the end ."], "auto", "spaces"),
        ("west", ["It's the end of it.", "He was in the end."], "en", "en"),
        ("west", [["It", "'s", "it"], ["He", "was"]], "auto", "spaces"),
    ],
)
def test_text_is_split_as_the_text_of_the_model_was(tiny, said, texts, lang, way):
    elmo = bilmo.Embedder(replace(tiny.bundle, lang=said))
    task = Classifier(elmo, **SMALL, lang=lang)
    next(task.events(Dataset(texts, ["a", "b"]), dev=Dataset(texts, ["a", "b"])))
    assert task.lang_ == way


def test_mistakes_have_clear_errors(tiny):
    some, labels = texts(10)
    cases = [
        (ConfigError, "accepted: elmo_at, mix", lambda: Classifier(tiny, widht=3).fit(some, labels)),
        (ConfigError, "head is 'tree'", lambda: Classifier(tiny, head="tree").fit(some, labels)),
        (
            ConfigError,
            "linear head has no network",
            lambda: Classifier(tiny, head="linear", elmo_at="both").fit(some, labels),
        ),
        (ConfigError, "mix is 'some'", lambda: Classifier(tiny, mix="some").fit(some, labels)),
        (ConfigError, "layers are numbered 0", lambda: Classifier(tiny, mix=7).fit(some, labels)),
        (ConfigError, "the task has no input", lambda: Classifier(None).fit(some, labels)),
        (ConfigError, "dropout is 1", lambda: Classifier(tiny, dropout=1).fit(some, labels)),
        (
            ConfigError,
            "carry a state",
            lambda: Classifier(bilmo.Embedder(tiny.bundle, start="carry")).fit(some, labels),
        ),
        (TextError, "nothing to learn", lambda: Classifier(tiny).fit(some, ["a"] * 10)),
        (TextError, "10 texts, but labels for 1", lambda: Classifier(tiny).fit(some, ["a"])),
        (TextError, "no examples", lambda: Classifier(tiny).fit([], [])),
        (TextError, "found one string", lambda: Classifier(tiny).fit("text", labels)),
        (TextError, "a label is 'a' (str); labels must be all", lambda: Classifier(tiny).fit(some, [1, "a"] * 5)),
        (TextError, "a label is 0.5 (float)", lambda: Classifier(tiny).fit(some, [0.5] * 10)),
        (
            TextError,
            "a label is 1 (int); labels must be of the trained type, str",
            lambda: Classifier(tiny).fit(some, labels, dev=(some, [1] * 10)),
        ),
        (ConfigError, "bilmo.load('m')", lambda: Classifier("m").fit(some, labels)),
        (ConfigError, "vectors is a ndarray", lambda: Classifier(tiny, vectors=np.ones(3)).fit(some, labels)),
        (ConfigError, "vectors is a dict", lambda: Classifier(tiny, vectors={}).fit(some, labels)),
        (TextError, "no such file", lambda: Classifier(tiny, vectors="nowhere").fit(some, labels)),
        (ConfigError, "seed is 9223372036854775808", lambda: Classifier(tiny, seed=2**63).fit(some, labels)),
        (ConfigError, "tune trains the biLM", lambda: Classifier(tiny, elmo_at="none", tune=True).fit(some, labels)),
        (
            TextError,
            "1 tokens, but 2 tags",
            lambda: Tagger(tiny).fit([["a", "b"]], [["O", "X"]], dev=([["a"]], [["O", "O"]])),
        ),
        (TextError, "too few different", lambda: Classifier(tiny).fit(["a", "a"], ["x", "y"])),
        (TextError, "1 tokens, but 2 tags", lambda: Tagger(tiny).fit([["a"]], [["O", "O"]])),
        (TextError, "it must be a list of words", lambda: Tagger(tiny).fit(["a"], [["O"]])),
        (BilmoError, "is not fitted", lambda: Classifier(tiny).predict(some)),
        (TextError, "lang is 'xx'", lambda: Classifier(tiny, lang="xx").fit(some, labels)),
    ]
    for kind, message, run in cases:
        with pytest.raises(kind) as error:
            run()
        assert message in str(error.value)


def test_the_dev_set_is_split_off_by_words():
    examples = [(TextItem([[f"w{k % 30}"]]), k) for k in range(60)]
    train, held = split_off(examples, 0.1, lambda item: item.texts)
    assert sorted(k for _, k in [*train, *held]) == list(range(60))
    assert 6 <= len(held) <= 8
    assert not {item.text[0][0] for item, _ in train} & {item.text[0][0] for item, _ in held}


def test_batches_hold_every_example_once():
    lengths = [k % 17 for k in range(100)] + [9000, 9000, 30_000]
    found = batches(lengths, 8, "1 0")
    assert sorted(k for group in found for k in group) == list(range(103))
    assert all(len(group) <= 8 for group in found)
    assert all(len(group) == 1 for group in found if max(lengths[k] for k in group) > 8200)
    assert found != batches(lengths, 8, "1 1")


def test_settings_are_checked():
    assert check_settings({"mix": "0,1"}, Settings).mix == (0, 1)
    assert check_settings({"mix": 2}, Settings).mix == (2,)
    assert check_settings({}, Settings) == Settings()
    for name in ("hidden", "batch", "epochs", "rate", "dev_share"):
        with pytest.raises(ConfigError, match=name):
            check_settings({name: -1}, Settings)

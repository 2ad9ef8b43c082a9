"""Tasks are scikit-learn estimators: its tools accept them, they can be cloned and pickled, labels keep their type."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sklearn.base
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from bilmo.errors import ConfigError, TextError
from bilmo.store.vectors_file import Vectors
from bilmo.tasks import folder
from bilmo.tasks.classify.classifier import Classifier
from bilmo.tasks.tag.tagger import Tagger

from task_data import sentences, texts

SMALL = {"hidden": 12, "dropout": 0.0, "rate": 0.02, "batch": 16}
GIVEN = Vectors(["red", "cat", "the"], np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32))


def test_estimators_follow_the_conventions_of_scikit_learn(tiny):
    task = Classifier(tiny, hidden=7, vectors="scratch")
    assert task.get_params()["hidden"] == 7 and task.get_params()["elmo"] is tiny
    twin = sklearn.base.clone(task.set_params(rate=0.02, epochs=2))
    assert twin is not task and twin.elmo is tiny
    assert twin.get_params() == task.get_params()
    some, labels = texts(30)
    assert twin.fit(some, labels) is twin
    assert twin.predict_proba(some).shape == (30, 2)
    assert np.allclose(twin.predict_proba(some).sum(axis=1), 1)
    assert twin.score(some, labels) == np.mean([a == b for a, b in zip(twin.predict(some), labels, strict=True)])
    assert not hasattr(task, "labels_") and not hasattr(task, "classes_")
    with pytest.raises(ConfigError, match="no setting widht; accepted: elmo, vectors, cache, elmo_at"):
        task.set_params(widht=3)


def test_tools_of_scikit_learn_accept_estimators(tiny):
    some, labels = texts(30)
    task = Classifier(tiny, **SMALL, head="linear", epochs=2)
    assert cross_val_score(task, np.array(some), np.array(labels), cv=2, scoring="f1_macro").shape == (2,)
    search = GridSearchCV(task, {"hidden": [4, 8], "vectors": [None, GIVEN]}, cv=2, error_score="raise")
    search.fit(some, labels)
    assert list(search.classes_) == ["animal", "colour"]
    assert set(search.predict(some)) <= {"animal", "colour"}
    pipe = make_pipeline(FunctionTransformer(lambda texts: [text.lower() for text in texts]), task)
    pipe.set_params(classifier__epochs=1).fit(some, labels)
    assert pipe.predict_proba(some).shape == (30, 2)
    tagger = Tagger(tiny, **SMALL, head="linear", epochs=1)
    assert cross_val_score(tagger, *sentences(20), cv=2, error_score="raise").shape == (2,)


@pytest.mark.parametrize("numbers", [np.array([3, 7] * 15), [3, 7] * 15, [True, False] * 15])
def test_labels_keep_their_type(tiny, tmp_path, numbers):
    some, _ = texts(30)
    task = Classifier(tiny, **SMALL, epochs=6).fit(some, numbers)
    kind = bool if numbers[0] is True else int
    predicted = task.predict(some)
    assert predicted.shape == (len(some),) and predicted.dtype == np.array([kind(1)]).dtype
    assert {type(label) for label in [*predicted.tolist(), *task.labels_]} == {kind}
    assert task.predict([]).dtype == predicted.dtype and task.predict([]).shape == (0,)
    assert task.score(some, numbers) == np.mean(predicted == np.array(numbers))
    folder.save(task, tmp_path / "task")
    loaded: Any = folder.load(tmp_path / "task", elmo=tiny)
    assert loaded.labels_ == task.labels_ and type(loaded.labels_[0]) is kind
    with pytest.raises(TextError, match="of the trained type"):
        task.score(some, list(map(str, numbers)))


@pytest.mark.parametrize("settings", [{}, {"vectors": GIVEN, "chars": 3}, {"tune": True}], ids=["elmo", "all", "tuned"])
def test_tasks_can_be_pickled(tiny, settings):
    some, labels = texts(20)
    task = pickle.loads(pickle.dumps(Classifier(tiny, **SMALL, epochs=1, **settings))).fit(some, labels)
    again = pickle.loads(pickle.dumps(task))
    assert np.allclose(task.predict_proba(some), again.predict_proba(some), atol=1e-6)
    tagger = Tagger(tiny, **SMALL, epochs=1, **settings).fit(*sentences(12))
    assert pickle.loads(pickle.dumps(tagger)).predict(sentences(5)[0]) == tagger.predict(sentences(5)[0])

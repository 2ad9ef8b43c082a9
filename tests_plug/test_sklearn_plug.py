"""ElmoVectorizer with the real scikit-learn."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import estimator_checks

import bilmo
from bilmo.plug.sklearn import ElmoVectorizer
from bilmo.store import model_folder
from fresh import fresh

from task_data import made, texts


def test_vectors_are_those_of_embed(model):
    words, _ = texts(6)
    elmo = bilmo.load(model)
    for settings in ({}, {"mix": "top", "pool": "max"}, {"mix": (0, 1), "normalize": True}, {"dtype": "float16"}):
        expected = elmo.embed(words, **({"pool": "mean"} | settings))
        for vectorizer in (ElmoVectorizer(str(model), **settings), ElmoVectorizer(elmo, **settings)):
            np.testing.assert_array_equal(vectorizer.fit_transform(words), expected)
    tokens = [["the", "cat"], [], ["a", "red", "dog"]]
    np.testing.assert_array_equal(ElmoVectorizer(model).transform(tokens), elmo.embed(tokens, pool="mean"))
    np.testing.assert_array_equal(ElmoVectorizer(model).transform(np.array(words)), elmo.embed(words, pool="mean"))


def test_columns_have_names_also_in_tables(model):
    pandas = pytest.importorskip("pandas")
    vectorizer = ElmoVectorizer(model, mix="concat")
    names = vectorizer.get_feature_names_out()
    assert list(names[:2]) == ["elmovectorizer0", "elmovectorizer1"] and len(names) == 32
    table = vectorizer.set_output(transform="pandas").fit_transform(pandas.Series(["a cat", "a dog"]))
    assert isinstance(table, pandas.DataFrame) and list(table.columns) == list(names)
    assert isinstance(clone(vectorizer).fit_transform(["a cat"]), pandas.DataFrame)


def test_a_pipeline_learns_searches_and_is_saved(model, tmp_path):
    words, labels = texts(60)
    pipeline = Pipeline([("elmo", ElmoVectorizer(str(model))), ("classify", LogisticRegression(C=100, max_iter=500))])
    assert cross_val_score(pipeline, words, labels, cv=3).mean() > 0.8
    search = GridSearchCV(pipeline, {"elmo__mix": ["mean", 0], "elmo__pool": ["mean", "max"]}, cv=2)
    search.fit(words, labels)
    assert search.best_params_.keys() == {"elmo__mix", "elmo__pool"}
    best = search.best_estimator_
    data = pickle.dumps(best)
    (tmp_path / "pipeline.pkl").write_bytes(data)
    assert len(data) < 20_000  # the name of the model, not its weights
    code = "import pickle, sys; p = pickle.load(open(sys.argv[1], 'rb')); print(*p.predict(sys.argv[2:]), sep='\\n')"
    assert fresh(code, tmp_path / "pipeline.pkl", *words[:10]).split() == list(best.predict(words[:10]))


def test_another_model_under_the_same_path_is_refused(model):
    saved = pickle.dumps(ElmoVectorizer(model).fit(["a"]))
    for file in model.iterdir():
        file.unlink()
    model.rmdir()
    model_folder.write(made(1), model)
    with pytest.raises(ValueError, match="is not the model that this vectorizer was saved with"):
        pickle.loads(saved).transform(["a"])


ON_ITSELF = (
    "check_estimator_cloneable check_estimator_repr check_estimator_tags_renamed check_valid_tag_types "
    "check_no_attributes_set_in_init check_parameters_default_constructible check_get_params_invariance "
    "check_set_params check_mixin_order check_do_not_raise_errors_in_init_or_set_params"
).split()
"""Checks of scikit-learn that need no data; those with data give numbers, never texts."""


@pytest.mark.parametrize("name", ON_ITSELF)
def test_the_checks_of_scikit_learn_that_texts_can_pass(model, name):
    getattr(estimator_checks, name)("ElmoVectorizer", ElmoVectorizer(str(model)))


def test_scikit_learn_itself_leaves_out_only_the_checks_with_numbers(model):
    with pytest.warns(Warning, match="requires input"):
        for estimator, check in estimator_checks.estimator_checks_generator(ElmoVectorizer(str(model))):
            check(estimator)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mix": "middle"}, "mix is 'middle'; accepted"),
        ({"mix": "all"}, "use mix='concat'"),
        ({"mix": 7}, "numbered 0"),
        ({"pool": "none"}, "pool is 'none'; accepted: mean, max"),
        ({"start": "warm"}, "start is 'warm'"),
        ({"model": "no-such-model"}, "there is no such file or folder"),
    ],
)
def test_wrong_settings_are_value_errors(model, settings, message):
    with pytest.raises(ValueError, match=message):
        make_pipeline(ElmoVectorizer(**({"model": model} | settings)), LogisticRegression()).fit(["a", "b"], [0, 1])


def test_wrong_texts_are_value_errors(model):
    for wrong in ("one text", [1, 2], [["a"], [2]]):
        with pytest.raises(ValueError, match="text"):
            ElmoVectorizer(model).transform(wrong)

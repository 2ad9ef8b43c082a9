"""Coreference learns what can be learned, gives legal answers in any batch, and keeps the manners of all estimators."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn.base
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bilmo
from bilmo.errors import ConfigError, TextError
from bilmo.tasks import folder
from bilmo.tasks.core.spec import Dataset
from bilmo.tasks.coref import task as coref_task
from bilmo.tasks.coref.coreference import Coreference
from bilmo.tasks.coref.head import keep, linked

from task_data import ANIMALS, REST, documents, made

SMALL = {"hidden": 12, "dropout": 0.0, "rate": 0.01, "span_width": 3}


def test_it_learns_which_animals_are_the_same(tiny):
    task = Coreference(tiny, vectors="scratch", **SMALL, epochs=8, patience=8)
    assert task.fit(*documents(30)).score(*documents(10, seed=1)) > 0.9


@pytest.mark.parametrize("elmo_at", ["input", "output", "both", "none"])
def test_the_head_overfits(tiny, elmo_at):
    some = documents(4)
    task = Coreference(tiny, vectors="scratch", elmo_at=elmo_at, **SMALL, epochs=45, patience=45)
    assert task.fit(*some, dev=some).best_ > 0.95


@pytest.fixture(scope="module")
def random_head():
    """Random weights, so that there are many mentions and links."""
    task = Coreference(bilmo.Embedder(made(0)), vectors="scratch", **SMALL, epochs=1).fit(*documents(4))
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in task.network_.head.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)
        task.network_.head.mention_score.bias.fill_(2.0)
    sizes = {len(cluster) for clusters in task.predict(documents(5)[0]) for cluster in clusters}
    assert min(sizes) == 1 and max(sizes) > 2
    return task


words = st.sampled_from((*ANIMALS, *REST, "漢字", "é"))
stories = st.lists(st.lists(words, max_size=9), max_size=6)


@settings(max_examples=40, derandomize=True)  # two spans with almost the same score could change places
@given(st.lists(stories, min_size=1, max_size=4))
def test_answers_are_legal_and_do_not_depend_on_other_documents(random_head, some):
    found = random_head.predict(some)
    for story, clusters in zip(some, found, strict=True):
        tokens = sum(map(len, story))
        sentence = [number for number, row in enumerate(story) for _ in row]
        mentions = [mention for cluster in clusters for mention in cluster]
        assert len(set(mentions)) == len(mentions)  # each in one cluster
        for first, last in mentions:
            assert 0 <= first <= last < tokens
            assert last - first < SMALL["span_width"] and sentence[first] == sentence[last]
        for a, b in mentions:
            assert not any(a < c <= b < d for c, d in mentions)  # no two cross
        assert clusters == sorted(sorted(cluster) for cluster in clusters)
        assert random_head.predict([story]) == [clusters]
    shares = random_head.confidence(some)
    assert [len(row) for row in shares] == [sum(map(len, clusters)) for clusters in found]
    assert all(0 < share < 1 for row in shares for share in row)


@given(st.integers(0, 10_000), st.integers(1, 40))
def test_the_best_spans_that_do_not_cross_are_kept(seed, most):
    draw = np.random.default_rng(seed)
    spans = sorted(
        {(int(a), int(a + b)) for a, b in zip(draw.integers(0, 20, 40), draw.integers(0, 5, 40), strict=True)}
    )
    first, last = np.array(spans).T
    scores = draw.normal(size=len(spans)).astype(np.float32)
    expected: list[int] = []
    for k in np.argsort(-scores, kind="stable"):
        a, b = spans[k]
        if len(expected) < most and not any(
            spans[o][0] < a <= spans[o][1] < b or a < spans[o][0] <= b < spans[o][1] for o in expected
        ):
            expected.append(int(k))
    assert keep(first, last, scores, most).tolist() == sorted(expected)


def test_links_make_groups():
    assert linked(6, [(1, 0), (3, 1), (5, 4)], [2]) == [[0, 1, 3], [2], [4, 5]]
    assert linked(3, [], []) == []


def test_mentions_that_stand_alone_are_found_only_if_the_data_has_them(tiny):
    some, answers = documents(10)
    without = [[cluster for cluster in clusters if len(cluster) > 1] for clusters in answers]
    few = {**SMALL, "epochs": 10, "patience": 10}
    task = Coreference(tiny, vectors="scratch", **few).fit(some, without)
    assert task.prepared_.singletons is False
    assert all(len(cluster) > 1 for clusters in task.predict(some) for cluster in clusters)
    task = Coreference(tiny, vectors="scratch", **few).fit(some, answers)
    assert task.prepared_.singletons is True
    assert any(len(cluster) == 1 for clusters in task.predict(some) for cluster in clusters)


def test_saved_loaded_pickled_and_cloned(random_head, tmp_path):
    some, _ = documents(5, seed=3)
    expected = random_head.predict(some)
    assert any(expected)
    assert pickle.loads(pickle.dumps(random_head)).predict(some) == expected
    folder.save(random_head, tmp_path / "task")
    loaded = folder.load(tmp_path / "task", elmo=random_head.elmo)
    assert isinstance(loaded, Coreference) and loaded.predict(some) == expected
    assert sklearn.base.clone(random_head).get_params() == random_head.get_params()


def test_a_document_without_tokens_may_be_among_the_examples(tiny):
    some, answers = documents(4)
    task = Coreference(tiny, **SMALL, epochs=2).fit([[], *some], [[], *answers], dev=(some, answers))
    assert task.predict([[], some[0]])[0] == []


def test_raw_text_is_split(random_head):
    text = "The cat saw a dog. It sat.\n\nThen the cow saw it."
    (tokens,) = random_head.tokens([text])
    assert len(tokens) == 3 and tokens[0][-1] == "."
    assert random_head.predict([text]) == random_head.predict([tokens])
    assert random_head.predict(["", []]) == [[], []]


def test_wrong_clusters_are_refused(tiny):
    some, answers = documents(3)
    for bad, says in (
        ([[[(0, 99)]], *answers[1:]], "document 1: the mention [0, 99] is not in the document"),
        ([answers[0], [[(0, 1)], [(0, 1)]], answers[2]], "document 2: the mention [0, 1] is in two clusters"),
        ([[], [], []], "no document has a cluster"),
    ):
        with pytest.raises(TextError) as error:
            Coreference(tiny, **SMALL).fit(some, bad)
        assert says in str(error.value)
    with pytest.raises(ConfigError, match="span_width is 0"):
        Coreference(tiny, span_width=0).fit(some, answers)
    with pytest.raises(ConfigError, match="spans_per_token is 2"):
        Coreference(tiny, spans_per_token=2.0).fit(some, answers)


def test_a_document_that_is_too_long_is_refused_and_a_long_one_is_not_cut(tiny, random_head, monkeypatch):
    long = [sentence[:5] for story in documents(500)[0] for sentence in story][:1000]
    (clusters,) = random_head.predict([long])
    assert max(last for cluster in clusters for _, last in cluster) > 4900
    monkeypatch.setattr(coref_task, "MOST_TOKENS", 4999)
    with pytest.raises(TextError, match="document 1 has 5,000 tokens; coreference reads at most 4,999"):
        random_head.predict([long])


def test_mentions_that_cannot_be_found_are_reported(tiny):
    some, answers = documents(12)
    answers = [[[(0, 3), (5, 8)], *clusters] for clusters in answers]  # four tokens; the second crosses a sentence end
    task = Coreference(tiny, **SMALL, epochs=1)
    started = next(iter(task.events(Dataset(some, answers))))
    assert any("24 of" in note and "more than 3 tokens (span_width)" in note for note in started.notes)

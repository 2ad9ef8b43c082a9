"""Groups of vectors, and how many there are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import silhouette_score

from bilmo.embed.word_space import unit
from bilmo.sense.groups import group, k_means, plane, silhouette


def clouds(number, each, spread, seed=0):
    """Vectors around some orthogonal directions, and the direction of each."""
    chosen = np.random.default_rng(seed)
    true = np.repeat(np.arange(number), each)
    return unit(np.eye(12)[true] + spread * chosen.normal(size=(number * each, 12))), true


@pytest.mark.parametrize("number", [2, 3, 5])
def test_separate_clouds_are_found_with_their_number(number):
    vectors, true = clouds(number, 15, 0.1)
    labels, scores = group(vectors)
    assert len({(a, b) for a, b in zip(labels, true, strict=True)}) == number == labels.max() + 1
    assert max(scores, key=scores.get) == number


def test_one_cloud_and_few_vectors_are_one_group():
    vectors, _ = clouds(1, 40, 0.02)
    spread = unit(np.random.default_rng(1).normal(size=(300, 300)))
    assert group(spread)[0].max() == 0
    assert group(vectors[:5])[0].tolist() == [0] * 5 and group(vectors[:5])[1] == {}
    assert group(np.repeat(vectors[:1], 20, axis=0))[0].max() == 0


def test_the_largest_group_comes_first():
    vectors, _ = clouds(2, 20, 0.05)
    labels, _ = group(np.concatenate([vectors[:7], vectors[20:]]))
    assert np.bincount(labels).tolist() == [20, 7]


@given(st.integers(0, 1000), st.integers(2, 4))
@settings(max_examples=20)
def test_the_silhouette_is_that_of_scikit_learn(seed, number):
    vectors, _ = clouds(3, 6, 0.5, seed)
    labels = k_means(vectors, number)
    assert silhouette(vectors, labels) == pytest.approx(silhouette_score(vectors, labels, metric="cosine"), abs=1e-4)


def test_k_means_ends_where_no_vector_is_nearer_to_another_centre():
    vectors, _ = clouds(3, 20, 0.6)
    labels = k_means(vectors, 4)
    centres = unit(np.stack([vectors[labels == k].sum(axis=0) for k in range(4)]))
    assert (labels == (vectors @ centres.T).argmax(axis=1)).all()


def test_the_plane_has_the_directions_of_the_largest_variance():
    values = np.zeros((40, 5), dtype=np.float32)
    values[:, 3], values[:, 1] = np.linspace(-3, 3, 40), np.tile([1, -1], 20)
    found = plane(values)
    assert np.allclose(np.abs(found[:, 0]), np.abs(values[:, 3]), atol=0.2)
    assert np.allclose(found @ found.T, (values - values.mean(0)) @ (values - values.mean(0)).T, atol=1e-3)
    assert plane(np.ones((1, 5), dtype=np.float32)).tolist() == [[0, 0]]

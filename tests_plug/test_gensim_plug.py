"""KeyedVectors made from a model, used with the real gensim."""

import numpy as np
import pytest
from gensim.models import KeyedVectors

import bilmo
from bilmo.plug.gensim import to_keyed_vectors
from bilmo.sense import neighbours, uses
from fresh import fresh


def close(found, expected):
    assert [word for word, _ in found] == [word for word, _ in expected]
    np.testing.assert_allclose([cosine for _, cosine in found], [cosine for _, cosine in expected], atol=1e-5)


def test_the_words_of_a_model_have_the_neighbours_of_bilmo():
    elmo = bilmo.load("en")
    vectors = to_keyed_vectors(elmo)
    assert isinstance(vectors, KeyedVectors)
    close(vectors.most_similar("seven", topn=5), elmo.most_similar("seven", topn=5))
    given = {"positive": ["king", "women"], "negative": ["men"]}
    close(vectors.most_similar(**given, topn=3), elmo.most_similar(**given, topn=3))
    four = ["one", "two", "river", "three"]
    chosen = to_keyed_vectors("en", [*four, "one"])
    assert chosen.index_to_key == four and chosen.doesnt_match(four) == elmo.doesnt_match(four) == "river"
    unseen = to_keyed_vectors(elmo, ["seven", "sevenishly", "river"])  # by spelling, because one is not known
    assert unseen.vector_size < chosen.vector_size
    assert unseen.similarity("seven", "sevenishly") == pytest.approx(elmo.similarity("seven", "sevenishly"), abs=1e-5)


def test_the_words_of_a_text(model, tmp_path):
    lines = ["the red cat saw the dog .", "a dog and a cat .", "the cow saw the cat ."]
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    elmo = bilmo.load(model)
    expected = uses.in_text(elmo, [line.split() for line in lines], least=2)
    for given in ([line.split() for line in lines], tmp_path / "text.txt", [tmp_path / "text.txt"]):
        vectors = to_keyed_vectors(model, given, min_count=2)
        assert vectors.index_to_key == expected.words
        np.testing.assert_array_equal(vectors.vectors, expected.values)
        close(vectors.most_similar("cat"), neighbours.nearest(expected, "cat", 10))
    assert to_keyed_vectors(model, "the cat . the dog .").index_to_key == ["the", "cat", ".", "dog"]


def test_a_model_without_a_vocabulary_gives_vectors_to_given_words(old_model):
    vectors = to_keyed_vectors(old_model, ["cat", "cats", "river"])
    np.testing.assert_allclose(np.linalg.norm(vectors.vectors, axis=1), 1, atol=1e-5)
    with pytest.raises(bilmo.BilmoError, match="no vocabulary"):
        to_keyed_vectors(old_model)


def test_saved_and_loaded(model, tmp_path):
    vectors = to_keyed_vectors(model, [["the", "cat", "saw"], ["a", "dog"]])
    vectors.save(str(tmp_path / "words.kv"))
    vectors.save_word2vec_format(str(tmp_path / "words.txt"))
    code = (
        "import sys; from gensim.models import KeyedVectors as K; a = K.load(sys.argv[1])\n"
        "b = K.load_word2vec_format(sys.argv[2]); print(*a['cat'].tolist()); print(*b['cat'].tolist())"
    )
    for line in fresh(code, tmp_path / "words.kv", tmp_path / "words.txt").splitlines():
        np.testing.assert_allclose(np.array(line.split(), dtype=float), vectors["cat"], atol=1e-6)


@pytest.mark.parametrize("nothing", [[], "", [[]]])
def test_no_words_are_refused(model, nothing):
    with pytest.raises(bilmo.BilmoError, match="no words"):
        to_keyed_vectors(model, nothing)

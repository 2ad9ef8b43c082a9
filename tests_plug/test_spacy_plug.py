"""The spaCy component and architecture with the real spaCy."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin

import bilmo
import bilmo.plug.spacy
from bilmo.store import model_folder
from fresh import fresh

from task_data import made, sentences

CONFIG = """
[paths]
train = null
dev = null
[system]
seed = 0
[nlp]
lang = "en"
pipeline = ["tok2vec","ner"]
[components]
[components.tok2vec]
factory = "tok2vec"
[components.tok2vec.model]
@architectures = "bilmo.Tok2Vec.v1"
model = "MODEL"
width = 24
[components.ner]
factory = "ner"
[components.ner.model]
@architectures = "spacy.TransitionBasedParser.v2"
state_type = "ner"
hidden_width = 32
maxout_pieces = 2
[components.ner.model.tok2vec]
@architectures = "spacy.Tok2VecListener.v1"
width = 24
[corpora]
[corpora.train]
@readers = "spacy.Corpus.v1"
path = ${paths.train}
[corpora.dev]
@readers = "spacy.Corpus.v1"
path = ${paths.dev}
[training]
max_steps = 200
eval_frequency = 100
seed = 0
[training.optimizer]
@optimizers = "Adam.v1"
learn_rate = 0.003
"""


def pipeline(model, **settings):
    nlp = spacy.blank("en")
    nlp.add_pipe("bilmo", config={"model": str(model), **settings})
    return nlp


def test_tokens_keep_their_vectors(model):
    nlp, elmo = pipeline(model), bilmo.load(model)
    doc = nlp("The cat's  mat, isn't it?\n")
    (expected,) = elmo.embed([[token.text for token in doc]])
    np.testing.assert_allclose(doc.tensor, expected, atol=1e-6)
    np.testing.assert_allclose(doc[1].vector, expected[1], atol=1e-6)
    np.testing.assert_allclose(doc[1:3].vector, expected[1:3].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(doc.vector, expected.mean(axis=0), atol=1e-6)
    assert doc[0].has_vector and doc.has_vector
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a, b = expected[0], expected[1]
        cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        assert doc[0].similarity(doc[1]) == pytest.approx(float(cosine), abs=1e-5)
        assert doc.similarity(doc) == pytest.approx(1, abs=1e-5)
    assert nlp("").tensor.shape == (0, 16)


def test_sentences_are_embedded_separately_and_streams_give_the_same(model):
    nlp, elmo = pipeline(model, mix="top", batch_size=2), bilmo.load(model)
    nlp.add_pipe("sentencizer", first=True)
    doc = nlp("A cat sat. A dog ran.")
    expected = np.concatenate(elmo.embed([["A", "cat", "sat", "."], ["A", "dog", "ran", "."]], mix="top"))
    np.testing.assert_allclose(doc.tensor, expected, atol=1e-6)
    texts = ["A cat sat. A dog ran.", "", "One.", "Two of them."]
    for found, text in zip(nlp.pipe(texts), texts, strict=True):
        np.testing.assert_allclose(found.tensor, nlp(text).tensor, atol=1e-6)


def test_saved_and_loaded(model, tmp_path):
    nlp = pipeline(model)
    nlp.to_disk(tmp_path / "nlp")
    code = (
        "import sys, spacy, bilmo.plug.spacy; nlp = spacy.load(sys.argv[1]); "
        "print(*nlp('a red cat').tensor[1].tolist())"
    )
    found = np.array(fresh(code, tmp_path / "nlp").split(), dtype=float)
    np.testing.assert_allclose(found, nlp("a red cat").tensor[1], atol=1e-6)
    again = pipeline(model).from_bytes(nlp.to_bytes())
    np.testing.assert_array_equal(again("a").tensor, nlp("a").tensor)
    model.rename(tmp_path / "old")
    model_folder.write(made(1), model)
    with pytest.raises(ValueError, match="is not the model"):
        spacy.load(tmp_path / "nlp")


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"mix": "middle"}, "accepted"), ({"start": "warm"}, "start is"), ({"model": "nothing"}, "no such file")],
)
def test_wrong_settings_are_value_errors(model, settings, message):
    with pytest.raises(ValueError, match=message):
        pipeline(**({"model": model} | settings))


def test_the_gradients_of_the_mix_equal_finite_differences(model):
    layer = bilmo.plug.spacy.tok2vec(str(model))
    nlp = spacy.blank("en")
    docs = [nlp("the red cat"), nlp("a dog"), nlp("")]
    layer.initialize()
    layer.set_param("weights", np.array([0.3, -0.2, 0.5], dtype=np.float32))
    outputs, backward = layer(docs, is_train=True)
    assert [one.shape for one in outputs] == [(3, 16), (2, 16), (0, 16)]
    backward([2 * one for one in outputs])

    def loss():
        return sum(float((one.astype(float) ** 2).sum()) for one in layer.predict(docs))

    for name, number in (("weights", 0), ("weights", 2), ("scale", 0)):
        values, step = layer.get_param(name).copy(), 1e-2
        ends = []
        for sign in (1, -1):
            moved = values.copy()
            moved[number] += sign * step
            layer.set_param(name, moved)
            ends.append(loss())
        layer.set_param(name, values)
        assert layer.get_grad(name)[number] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=2e-2)


def test_spacy_train_learns_names_and_the_pipeline_is_loaded(model, tmp_path):
    nlp = spacy.blank("en")
    for part, seed in (("train", 0), ("dev", 1)):
        store = DocBin()
        for words, tags in zip(*sentences(40, seed), strict=True):
            store.add(Doc(nlp.vocab, words, ents=tags))
        store.to_disk(tmp_path / f"{part}.spacy")
    (tmp_path / "config.cfg").write_text(CONFIG.replace("MODEL", str(model)))
    paths = ("--paths.train", tmp_path / "train.spacy", "--paths.dev", tmp_path / "dev.spacy")
    (tmp_path / "code.py").write_text("import bilmo.plug.spacy\n")
    for step in (["init", "fill-config", "config.cfg", "full.cfg"], ["train", "full.cfg", "-o", "out", *paths]):
        done = subprocess.run(
            [sys.executable, "-m", "spacy", *step, "--code", "code.py"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
    trained = spacy.load(tmp_path / "out" / "model-best")
    assert trained.meta["performance"]["ents_f"] > 0.5
    words = ["the", "red", "cat", "saw", "a", "cow"]
    expected = [(ent.text, ent.label_) for ent in trained(Doc(trained.vocab, words)).ents]
    code = (
        "import sys, spacy, bilmo.plug.spacy; from spacy.tokens import Doc; nlp = spacy.load(sys.argv[1]); "
        "print([(e.text, e.label_) for e in nlp(Doc(nlp.vocab, sys.argv[2:])).ents])"
    )
    assert fresh(code, tmp_path / "out" / "model-best", *words).strip() == str(expected) and expected
    weights = next(node for node in trained.get_pipe("tok2vec").model.walk() if node.name == "bilmo")
    assert np.abs(weights.get_param("weights")).max() > 0  # the mix was trained

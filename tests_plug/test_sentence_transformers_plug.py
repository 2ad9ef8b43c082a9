"""ElmoModule in the real SentenceTransformer."""

import json

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling

import bilmo
from bilmo.plug.sentence_transformers import ElmoModule
from fresh import fresh

TEXTS = ["the red cat", "a", "dogs and cats ."]


def sentence_model(model, **settings):
    elmo = ElmoModule(model, **settings)
    return SentenceTransformer(modules=[elmo, Pooling(elmo.get_embedding_dimension())], device="cpu")


def test_encode_gives_the_means_of_bilmo(model):
    made, elmo = sentence_model(model), bilmo.load(model)
    expected = elmo.embed([text.split() for text in TEXTS], pool="mean")
    np.testing.assert_allclose(made.encode(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(made.encode(TEXTS[0]), expected[0], atol=1e-5)
    normed = made.encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(np.linalg.norm(normed, axis=1), 1, atol=1e-5)
    assert made.similarity(normed[:1], normed[1:]).shape == (1, 2)
    tokens = made.encode(TEXTS, output_value="token_embeddings")
    np.testing.assert_allclose(tokens[0][:3], elmo.embed([TEXTS[0].split()])[0], atol=1e-5)


@pytest.mark.parametrize("tune", [False, True])
def test_trained_saved_and_loaded(model, tmp_path, tune):
    made = sentence_model(model, mix="weighted", tune=tune)
    trained = [p for p in made.parameters() if p.requires_grad]
    assert len(trained) > 20 if tune else len(trained) == 2
    optimizer = torch.optim.SGD(trained, lr=0.1)
    made.train()
    features = made.preprocess(TEXTS)
    (made(features)["sentence_embedding"] ** 2).sum().backward()
    optimizer.step()
    expected = made.encode(TEXTS)
    assert np.abs(expected - sentence_model(model, mix="weighted").encode(TEXTS)).max() > 1e-4
    made.save(str(tmp_path / "saved"))
    for file in model.iterdir():  # the saved model is whole
        file.unlink()
    code = (
        "import sys, json; from sentence_transformers import SentenceTransformer\n"
        "m = SentenceTransformer(sys.argv[1], device='cpu', trust_remote_code=True)\n"
        "print(json.dumps(m.encode(sys.argv[2:]).tolist()))"
    )
    found = np.array(json.loads(fresh(code, tmp_path / "saved", *TEXTS).splitlines()[-1]))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_wrong_settings_are_value_errors(model):
    with pytest.raises(ValueError, match="mix is 'middle'"):
        ElmoModule(model, mix="middle")
    with pytest.raises(ValueError, match="no such file"):
        ElmoModule("nothing")

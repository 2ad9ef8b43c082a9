"""ElmoLayer with the real Keras on torch."""

import keras
import numpy as np
import pytest

import bilmo
from bilmo.plug.keras import ElmoLayer
from bilmo.store import model_folder
from fresh import fresh

from task_data import made, texts

TOKENS = [["the", "red", "cat"], ["a"], []]


def classifier(model, **settings):
    layer = ElmoLayer(str(model), **settings)
    ids = keras.Input((None, 50), dtype="int32")
    pooled = keras.layers.GlobalAveragePooling1D()(layer(ids))
    made = keras.Model(ids, keras.layers.Dense(2, activation="softmax")(pooled))
    made.compile(keras.optimizers.Adam(0.05), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return layer, made


@pytest.mark.parametrize("mix", ["weighted", "mean", "top", "concat", 1])
def test_vectors_and_mask_are_those_of_bilmo(model, mix):
    layer = ElmoLayer(model, mix=mix)
    found = layer(layer.ids(TOKENS))
    expected = bilmo.load(model).embed(TOKENS, mix="mean" if mix == "weighted" else mix)
    assert found.shape == (3, 3, expected[0].shape[1]) == layer.compute_output_shape((3, 3, 50))
    for row, mask, vectors in zip(found.detach().numpy(), found._keras_mask.numpy(), expected, strict=True):
        np.testing.assert_allclose(row[: len(vectors)], vectors, atol=1e-5)
        assert not row[len(vectors) :].any() and mask.sum() == len(vectors)
    np.testing.assert_array_equal(layer.ids(["the red cat", "a", ""]), layer.ids(TOKENS))


def test_padding_is_masked_for_the_next_layer(model):
    layer, network = classifier(model)
    short = layer.ids([["a", "dog"]])
    long = np.concatenate([short, np.zeros((1, 5, 50), dtype=int)], axis=1)
    np.testing.assert_allclose(network.predict(short, verbose=0), network.predict(long, verbose=0), atol=1e-6)


@pytest.mark.parametrize("tune", [False, True])
def test_trains_and_is_saved_and_loaded_in_a_fresh_process(model, tmp_path, tune):
    words, labels = texts(40)
    keras.utils.set_random_seed(0)
    layer, network = classifier(model, tune=tune)
    targets = np.array([label == "colour" for label in labels], dtype=int)
    before = [w.numpy().copy() for w in layer.trainable_weights]
    assert len(before) > 20 if tune else len(before) == 2
    network.fit(layer.ids(words), targets, epochs=30, batch_size=20, verbose=0)
    assert all(not np.array_equal(old, new.numpy()) for old, new in zip(before, layer.trainable_weights, strict=True))
    assert network.evaluate(layer.ids(words), targets, verbose=0)[1] > 0.8
    network.save(tmp_path / "classifier.keras")
    code = (
        "import sys, json, keras; from bilmo.plug.keras import ElmoLayer\n"
        "network = keras.models.load_model(sys.argv[1])\n"
        "layer = next(one for one in network.layers if isinstance(one, ElmoLayer))\n"
        "print(json.dumps(network.predict(layer.ids(sys.argv[2:]), verbose=0).tolist()))"
    )
    found = np.array(__import__("json").loads(fresh(code, tmp_path / "classifier.keras", *words[:5])))
    np.testing.assert_allclose(found, network.predict(layer.ids(words), verbose=0)[:5], atol=1e-5)
    frozen = bilmo.load(model).bundle.weights
    held = layer._held.module.network.state_dict()
    assert tune != all(np.array_equal(held[name], value) for name, value in frozen.items())
    if not tune:
        model.rename(tmp_path / "old")
        model_folder.write(made(1), model)
        with pytest.raises((ValueError, TypeError), match="is not the model that this layer was saved with"):
            keras.models.load_model(tmp_path / "classifier.keras")


def test_strings_are_refused_with_what_to_do(model):
    layer = ElmoLayer(model)
    for wrong in (["a text"], np.array(["a text"]), [["a", "b"]]):
        with pytest.raises(TypeError, match=r"layer.ids\(texts\)"):
            layer(wrong)
    with pytest.raises(ValueError, match="sentences, tokens, characters"):
        layer(np.zeros((2, 3), dtype=int))
    with pytest.raises(ValueError, match="one string"):
        layer.ids("a text")
    with pytest.raises(ValueError, match="no such file or folder"):
        ElmoLayer("no-such-model")
    with pytest.raises(ValueError, match="pad on the right"):
        layer(np.concatenate([np.zeros((1, 1, 50), dtype=int), layer.ids([["a"]])], axis=1))


@pytest.mark.parametrize("backend", ["tensorflow", "jax", "numpy"])  # installed or not
def test_other_backends_are_refused_with_the_reason(backend):
    code = (
        f"import os; os.environ['KERAS_BACKEND'] = {backend!r}\nimport bilmo\n"
        "try:\n import bilmo.plug.keras\nexcept bilmo.BilmoError as error: print(error)"
    )
    assert "KERAS_BACKEND=torch" in fresh(code)

"""The names of TF-Hub's google/elmo: signatures, outputs, shapes and the trainable scalars."""

import numpy as np
import pytest
import torch

import bilmo
from bilmo.plug.tfhub import Module

TEXTS = ["the red cat", "a dog"]
TOKENS = {"tokens": [["the", "red", "cat", ""], ["a", "dog", "not", "read"]], "sequence_len": [3, 2]}


def test_outputs_are_the_layers_their_mix_and_the_mean_over_real_tokens(model):
    elmo = bilmo.load(model)
    layers = elmo.layers([text.split() for text in TEXTS])
    module = Module(model)
    for inputs, signature, steps in ((TEXTS, "default", 3), (TOKENS, "tokens", 4)):
        found = module(inputs, signature=signature, as_dict=True)
        assert found.keys() == {"word_emb", "lstm_outputs1", "lstm_outputs2", "elmo", "default"}
        assert found["word_emb"].shape == (2, steps, 8) and found["elmo"].shape == (2, steps, 16)
        for row, one in enumerate(layers):
            length = one.shape[1]
            for name, expected in (
                ("word_emb", one[0, :, :8]),
                ("lstm_outputs1", one[1]),
                ("lstm_outputs2", one[2]),
                ("elmo", one.mean(axis=0)),
            ):
                np.testing.assert_allclose(found[name][row, :length].detach(), expected, atol=1e-5)
                assert not found[name][row, length:].any()
            np.testing.assert_allclose(found["default"][row].detach(), one.mean(axis=(0, 1)), atol=1e-5)
        torch.testing.assert_close(module(inputs, signature=signature), found["default"])
    torch.testing.assert_close(module(np.array(TEXTS)), module(TEXTS))
    np.testing.assert_array_equal(module(["", "a"])[0].detach(), np.zeros(16))


def test_four_scalars_are_trained(model, tmp_path):
    module = Module(model, trainable=True)
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    assert sum(p.numel() for p in trained.values()) == 4
    assert module.variable_map["aggregation/weights"].shape == (1, 3)
    optimizer = torch.optim.SGD(trained.values(), lr=0.1)
    (module(TEXTS) ** 2).sum().backward()
    optimizer.step()
    torch.save(module.state_dict(), tmp_path / "module.pt")
    again = Module(model)
    assert not torch.allclose(again(TEXTS), module(TEXTS))
    again.load_state_dict(torch.load(tmp_path / "module.pt"))
    torch.testing.assert_close(again(TEXTS), module(TEXTS))
    assert not any(p.requires_grad for p in again.parameters())


@pytest.mark.parametrize(
    ("inputs", "signature", "message"),
    [
        (TEXTS, "words", "accepted: default, tokens"),
        ("one text", "default", "list of strings"),
        ([["a"]], "default", 'use "tokens"'),
        (TEXTS, "tokens", "tokens and sequence_len"),
        ({"tokens": [["a"]], "sequence_len": [2]}, "tokens", "for a row of 1 tokens"),
        ({"tokens": [["a"]], "sequence_len": [1, 1]}, "tokens", "has 2 lengths"),
        ([], "default", "at least one"),
    ],
)
def test_wrong_inputs_are_value_errors(model, inputs, signature, message):
    with pytest.raises(ValueError, match=message):
        Module(model)(inputs, signature=signature)


def test_addresses_of_tf_hub_are_refused_with_what_to_do():
    with pytest.raises(ValueError, match="elmo-original"):
        Module("https://tfhub.dev/google/elmo/3")

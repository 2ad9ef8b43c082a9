"""The model and tokenizer with the real transformers, without a network."""

import json

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer, pipeline

import bilmo
from bilmo.plug.transformers import BilmoModel, BilmoTokenizer, to_transformers
from fresh import fresh

TEXTS = ["the red cat", "a", "dogs and cats ."]


@pytest.fixture
def folder(model, tmp_path):
    made, tokenizer = to_transformers(model)
    made.save_pretrained(tmp_path / "hf")
    tokenizer.save_pretrained(tmp_path / "hf")
    return tmp_path / "hf"


def test_vectors_of_all_layers_are_those_of_bilmo(model, folder):
    loaded, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert isinstance(loaded, BilmoModel) and isinstance(tokenizer, BilmoTokenizer)
    assert AutoConfig.from_pretrained(folder).hidden_size == 16
    inputs = tokenizer(TEXTS, return_tensors="pt")
    found = loaded(**inputs, output_hidden_states=True)
    layers = bilmo.load(model).layers([text.split() for text in TEXTS])
    assert len(found.hidden_states) == 3 and found.last_hidden_state.shape == (3, 4, 16)
    for row, expected in enumerate(layers):
        length = expected.shape[1]
        assert inputs["attention_mask"][row].sum() == length
        np.testing.assert_allclose(found.last_hidden_state[row, :length].detach(), expected.mean(axis=0), atol=1e-5)
        assert not found.last_hidden_state[row, length:].any()
        for hidden, layer in zip(found.hidden_states, expected, strict=True):
            np.testing.assert_allclose(hidden[row, :length].detach(), layer, atol=1e-5)
    assert loaded(**inputs).hidden_states is None and isinstance(loaded(**inputs, return_dict=False), tuple)


def test_the_mask_cuts_a_text_and_longer_padding_changes_nothing(folder):
    loaded, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    long, short = tokenizer(["the red cat"], return_tensors="pt"), tokenizer(["the red"], return_tensors="pt")
    cut = loaded(long["input_ids"], attention_mask=torch.tensor([[1, 1, 0]])).last_hidden_state
    torch.testing.assert_close(cut[:, :2], loaded(**short).last_hidden_state)
    assert not cut[:, 2].any()
    truncated = tokenizer("the red cat", truncation=True, max_length=2, return_tensors="pt")
    assert torch.equal(truncated["input_ids"], short["input_ids"])
    words = tokenizer([["the", "red"]], is_split_into_words=True, return_tensors="pt")
    assert torch.equal(words["input_ids"], short["input_ids"])
    with pytest.raises(ValueError, match="texts, tokens, characters"):
        loaded(torch.zeros(1, 2, dtype=torch.long))
    with pytest.raises(ValueError, match="pad on the right"):
        loaded(long["input_ids"], attention_mask=torch.tensor([[0, 1, 1]]))


def test_the_pipeline_extracts_features(model, folder):
    extract = pipeline("feature-extraction", model=str(folder), tokenizer=str(folder))
    expected = bilmo.load(model).embed([text.split() for text in TEXTS])
    for found, wanted in zip(extract(TEXTS), expected, strict=True):
        np.testing.assert_allclose(np.array(found[0]), wanted, atol=1e-5)
    for found, wanted in zip(extract(TEXTS, batch_size=3), expected, strict=True):
        np.testing.assert_allclose(np.array(found[0])[: len(wanted)], wanted, atol=1e-5)


def test_gradients_reach_every_weight_and_a_trained_model_is_saved(model, tmp_path):
    made, tokenizer = to_transformers(model, mix="weighted")
    inputs = tokenizer(TEXTS, return_tensors="pt")
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
    (made(**inputs).last_hidden_state ** 2).sum().backward()
    assert all(parameter.grad is not None for parameter in made.parameters())
    optimizer.step()
    made.save_pretrained(tmp_path / "trained")
    tokenizer.save_pretrained(tmp_path / "trained")
    code = (
        "import sys, json, bilmo.plug.transformers; from transformers import AutoModel, AutoTokenizer\n"
        "t = AutoTokenizer.from_pretrained(sys.argv[1]); m = AutoModel.from_pretrained(sys.argv[1])\n"
        "print(json.dumps(m(**t(sys.argv[2:], return_tensors='pt')).last_hidden_state.tolist()))"
    )
    found = np.array(json.loads(fresh(code, tmp_path / "trained", *TEXTS)))
    np.testing.assert_allclose(found, made(**inputs).last_hidden_state.detach(), atol=1e-5)


def test_unicode_models_and_wrong_arguments(tmp_path):
    made, tokenizer = to_transformers("zh")
    made.save_pretrained(tmp_path / "zh")
    tokenizer.save_pretrained(tmp_path / "zh")
    loaded, again = AutoModel.from_pretrained(tmp_path / "zh"), AutoTokenizer.from_pretrained(tmp_path / "zh")
    elmo = bilmo.load("zh")
    tokens, expected = elmo.embed("宝玉见了黛玉")
    assert again.tokenize("宝玉见了黛玉") == tokens
    found = loaded(**again("宝玉见了黛玉", return_tensors="pt")).last_hidden_state[0]
    np.testing.assert_allclose(found.detach(), expected, atol=1e-4)
    with pytest.raises(ValueError, match="mix is 'middle'"):
        to_transformers("en", mix="middle")
    with pytest.raises(ValueError, match="no such file"):
        to_transformers("nothing")
    with pytest.raises(OSError, match="no such file"):
        BilmoTokenizer.from_pretrained(tmp_path)

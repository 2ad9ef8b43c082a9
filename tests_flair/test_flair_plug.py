"""TokenEmbeddings with the real flair, which needs an older transformers and so an environment of its own."""

import logging
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from flair.data import Corpus, Dictionary, Sentence
from flair.datasets import FlairDatapointDataset
from flair.embeddings import CharacterEmbeddings, StackedEmbeddings
from flair.models import SequenceTagger
from flair.trainers import ModelTrainer

import bilmo
from bilmo.plug.flair import BilmoEmbeddings
from bilmo.store import model_folder
from fresh import fresh

from task_data import made
from task_data import sentences as drawn

ROOT = Path(__file__).parents[1]
TEXTS = ["the red cat", "a", "dogs and cats ."]


@pytest.fixture(autouse=True)
def seeded(monkeypatch):
    monkeypatch.setattr(logging.getLogger("flair"), "disabled", True)
    torch.manual_seed(0)


@pytest.fixture
def model(tmp_path):
    model_folder.write(made(0), tmp_path / "model")
    return tmp_path / "model"


def data():
    """Sentences in which animals, with the colours before them, are spans."""
    found = []
    for tokens, tags in zip(*drawn(40), strict=True):
        sentence = Sentence(tokens)
        at = 0
        while at < len(tags):
            end = at + 1
            while end < len(tags) and tags[end].startswith("I-"):
                end += 1
            if tags[at].startswith("B-"):
                sentence[at:end].add_label("ner", tags[at][2:])
            at = end
        found.append(sentence)
    return found


def trained(embeddings, folder, epochs=3):
    rows = data()
    some = {"train": rows[:30], "dev": rows[30:35], "test": rows[35:]}
    corpus = Corpus(**{name: FlairDatapointDataset(part) for name, part in some.items()})
    tagger = SequenceTagger(
        hidden_size=16,
        embeddings=embeddings,
        tag_dictionary=corpus.make_label_dictionary("ner", add_unk=False),
        tag_type="ner",
    )
    ModelTrainer(tagger, corpus).train(folder, learning_rate=0.3, mini_batch_size=8, max_epochs=epochs)
    return tagger


@pytest.mark.parametrize("mix", ["mean", "top", "concat", 0])
def test_vectors_are_those_of_bilmo(model, mix):
    embeddings = BilmoEmbeddings(model, mix=mix)
    sentences = [Sentence(text.split()) for text in TEXTS]
    embeddings.embed(sentences)
    for sentence, expected in zip(sentences, bilmo.load(model).embed([t.split() for t in TEXTS], mix=mix), strict=True):
        found = np.stack([token.get_embedding().numpy() for token in sentence])
        np.testing.assert_allclose(found, expected, atol=1e-6)
        assert found.shape[1] == embeddings.embedding_length


def test_a_tagger_trains_and_is_loaded_in_another_process(model, tmp_path):
    stack = StackedEmbeddings(
        [BilmoEmbeddings(model, mix="weighted"), CharacterEmbeddings(Dictionary.load_from_file(chars(tmp_path)))]
    )
    before = stack.embeddings[0].trained[0].weights.detach().clone()
    tagger = trained(stack, tmp_path / "run")
    assert not torch.equal(stack.embeddings[0].trained[0].weights, before)
    tagger.save(tmp_path / "tagger.pt")
    assert (tmp_path / "tagger.pt").stat().st_size < 1e6
    sentence = Sentence(["a", "red", "cat", "."])
    tagger.predict(sentence)
    said = fresh(
        "import sys, bilmo.plug.flair\nfrom flair.data import Sentence\nfrom flair.models import SequenceTagger\n"
        "tagger = SequenceTagger.load(sys.argv[1]); sentence = Sentence(['a', 'red', 'cat', '.'])\n"
        "tagger.predict(sentence)\n"
        "print([(span.text, span.tag, round(span.score, 3)) for span in sentence.get_spans('ner')])",
        tmp_path / "tagger.pt",
    )
    expected = [(span.text, span.tag, round(span.score, 3)) for span in sentence.get_spans("ner")]
    assert expected and said.strip().splitlines()[-1] == str(expected)


def chars(folder):
    dictionary = Dictionary()
    for character in "abcdefghijklmnopqrstuvwxyz.":
        dictionary.add_item(character)
    dictionary.save(folder / "chars")
    return folder / "chars"


def test_a_tuned_network_is_trained_and_saved(model, tmp_path):
    embeddings = BilmoEmbeddings(model, tune=True)
    before = {name: value.clone() for name, value in embeddings.state_dict().items()}
    tagger = trained(embeddings, tmp_path / "run", epochs=1)
    changed = [name for name, value in embeddings.state_dict().items() if not torch.equal(value, before[name])]
    assert any("forward_stack" in name for name in changed)
    tagger.save(tmp_path / "tagger.pt")
    loaded = SequenceTagger.load(tmp_path / "tagger.pt")
    for name, value in embeddings.state_dict().items():
        assert torch.equal(loaded.embeddings.state_dict()[name], value)


def test_fixed_vectors_are_static_and_have_nothing_to_train(model):
    fixed = BilmoEmbeddings(model)
    assert fixed.static_embeddings and not list(fixed.parameters()) and not fixed.state_dict()
    assert not BilmoEmbeddings(model, mix="weighted").static_embeddings
    assert "mix='mean'" in repr(fixed)


def test_mistakes_are_reported_as_value_errors(model):
    with pytest.raises(ValueError, match="mix"):
        BilmoEmbeddings(model, mix="middle")
    with pytest.raises(ValueError, match="carry"):
        BilmoEmbeddings(model, start="carry")
    with pytest.raises(ValueError, match="not the model"):
        BilmoEmbeddings.from_params(BilmoEmbeddings(model).to_params() | {"identity": "0"})


TITLED = re.compile(r'^```python title="(?:flair|With bilmo)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["guides/libraries.md", "coming-from/flair.md"])
def test_blocks_of_the_documentation_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = TITLED.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)

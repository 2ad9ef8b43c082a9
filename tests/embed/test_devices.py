"""Embedding on another device, as far as a processor shows it: there the network itself runs."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings

import bilmo
from bilmo.embed import runner
from bilmo.embed.embedder import Embedder
from bilmo.errors import ConfigError
from bilmo.ids.vocab import Vocab
from bilmo.net.softmax import Softmax
from bilmo.store.bundle import Bundle
from program import program

import strategies
from task_data import made

TEXT = [["the", "cat", "字"], [], ["The", "cats"] * 40, ["<S>", "b"]]


def bundle_of(config, seed):
    torch.manual_seed(0)
    softmax = {f"softmax.{name}": value for name, value in Softmax(11, config.width).state_dict().items()}
    chars = strategies.indexer_of(config).chars
    return Bundle(
        config,
        strategies.random_bilm(config, seed).state_dict() | softmax,
        layout="random",
        vocab=Vocab(strategies.VOCABULARY),
        chars=chars if config.words.chars and config.words.chars.kind == "unicode" else None,
    )


def same(found, expected):
    return all(a.shape == b.shape and np.allclose(a, b, atol=1e-5) for a, b in zip(found, expected, strict=True))


@pytest.fixture
def elsewhere(monkeypatch):
    """The CPU stands for another device."""
    monkeypatch.setattr(runner, "uses_prepared_weights", lambda device: False)


@pytest.mark.parametrize("start", ["settled", "zero", "carry"])
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(config=strategies.configs(), text=strategies.texts(), seed=strategies.seeds())
def test_the_network_itself_gives_the_vectors_of_prepared_weights(monkeypatch, start, config, text, seed):
    bundle = bundle_of(config, seed)
    prepared = Embedder(bundle, start=start)
    with monkeypatch.context() as patch:
        patch.setattr(runner, "uses_prepared_weights", lambda device: False)
        plain = Embedder(bundle, start=start)
    assert isinstance(plain._runner.network, bilmo.BiLM) and not isinstance(prepared._runner.network, bilmo.BiLM)
    for some in (text, TEXT[: len(text)]):
        assert same(plain.layers(some), prepared.layers(some))
        assert same(plain.log_probs(some), prepared.log_probs(some))
        assert same(plain.embed(some, mix=0, normalize=True), prepared.embed(some, mix=0, normalize=True))
    assert same([plain.word_vectors(["cat", "b"])], [prepared.word_vectors(["cat", "b"])])
    assert same(plain.carried().values(), prepared.carried().values())


def test_nothing_stays_on_the_processor(monkeypatch):
    """The device `meta`, whose tensors have no values, stands for a GPU: mixing devices would fail."""
    meta = torch.device("meta")
    monkeypatch.setattr("bilmo.embed.loaded.device_of", lambda name: meta)
    elmo = Embedder(made(0), device="meta")
    assert elmo.device == meta and "device='meta'" in repr(elmo)
    elmo._runner.words._encoder = lambda words: torch.zeros(len(words.chars), 8)  # a value cannot come back from meta
    assert elmo._runner.network.words(elmo._runner.indexer.batch(TEXT).words).is_meta
    groups = list(elmo._runner.run(TEXT, 3, None))
    assert all(values.is_meta and values.shape == (3, sum(lengths), 16) for _, lengths, values in groups)
    assert elmo.module()(TEXT)[0].is_meta


def test_a_model_can_be_moved(elsewhere):
    elmo = Embedder(made(0), start="carry")
    expected = Embedder(made(0), start="carry")
    assert same(elmo.layers(TEXT), expected.layers(TEXT))
    assert elmo.to("cpu") is elmo and elmo.device == torch.device("cpu")
    assert same(elmo.to(torch.device("cpu")).layers(TEXT), expected.layers(TEXT))  # the carried state moved too
    words = Embedder(made(0), word_vectors=(["cat"], np.ones((1, 8), dtype=np.float32)))
    assert (words.to("cpu").word_vectors(["cat"]) == 1).all()  # and so did the words computed beforehand
    again = pickle.loads(pickle.dumps(words))
    assert again.device == words.device and (again.word_vectors(["cat"]) == 1).all()


def test_a_device_that_is_not_there_is_refused(model, tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="device is 'gpu'; accepted: auto, cpu, cuda, mps"):
        bilmo.load(model, device="gpu")
    with pytest.raises(ConfigError, match="device is 'cuda:99'; torch cannot use it here"):
        bilmo.load(tmp_path / "nothing", device="cuda:99")  # before the model is read
    elmo = bilmo.load(model, device="auto")
    with pytest.raises(ConfigError, match="device is 'mps:7'"):
        elmo.to("mps:7")
    assert elmo.device.type == "cpu" and len(elmo.layers(TEXT)) == 4


def test_int8_needs_the_processor(elsewhere):
    with pytest.raises(ConfigError, match="precision int8 works only on the CPU; on cpu use float32"):
        Embedder(made(0), precision="int8")


def test_embed_has_the_option(model, tmp_path):
    done = program(tmp_path, "embed", "model", "a cat", "--device", "gpu")
    assert done.code == 1 and "device is 'gpu'; accepted: auto, cpu" in done.err
    here = program(tmp_path, "embed", "model", "a cat", "--device", "cpu")
    assert here.code == 0 and here.out == program(tmp_path, "embed", "model", "a cat").out

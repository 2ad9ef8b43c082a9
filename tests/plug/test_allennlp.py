"""The drop-in for AllenNLP against vectors that AllenNLP 2.10.1 gave, recorded by tests_plug/peer_allennlp.py."""

import io
import json
import pickle
import runpy
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

import bilmo
from bilmo.embed.loaded import settled
from bilmo.formats import open as layouts
from bilmo.ids.vocab import Vocab
from bilmo.net.config import CellConfig, CharsConfig, TableConfig, WordsConfig
from bilmo.plug.allennlp import (
    ConfigurationError,
    Elmo,
    ElmoEmbedder,
    ElmoTokenEmbedder,
    _ElmoBiLm,
    _ElmoCharacterEncoder,
    batch_to_ids,
)
from bilmo.plug.allennlp.__main__ import main
from bilmo.store.bundle import Bundle

ROOT = Path(__file__).parents[2]
PARITY = ROOT / "tests" / "parity" / "allennlp"
FILES = str(PARITY / "options.json"), str(PARITY / "weights.hdf5")
CLOSE = 1e-5
sys.path.append(str(ROOT / "tests_plug"))

from peer_allennlp import BATCHES, outputs  # noqa: E402


@pytest.fixture(scope="module")
def recorded():
    with np.load(PARITY / "elmo.npz") as file:
        return dict(file)


def test_every_output_equals_that_of_allennlp(recorded):
    found = outputs(Elmo, _ElmoCharacterEncoder, batch_to_ids, *FILES)
    expected = {name for name in recorded if not name.startswith("state.")} - {"ids", "trained"}
    assert found.keys() == expected
    for name, values in found.items():
        assert values.shape == recorded[name].shape and values.dtype == recorded[name].dtype, name
        np.testing.assert_allclose(values, recorded[name], atol=CLOSE, rtol=1e-5, err_msg=name)


def test_character_ids_equal_those_of_allennlp(recorded):
    np.testing.assert_array_equal(batch_to_ids(BATCHES[0]).numpy(), recorded["ids"])
    assert batch_to_ids([[], ["a"]]).shape == (2, 1, 50) and batch_to_ids([]).shape == (0, 0, 50)
    with pytest.raises(bilmo.BilmoError, match="list of words"):
        batch_to_ids(["a text"])


def test_weights_that_were_trained_with_allennlp_are_loaded(recorded):
    state = {name.removeprefix("state."): torch.from_numpy(v) for name, v in recorded.items() if name[:6] == "state."}
    task = torch.nn.ModuleDict({"elmo": Elmo(*FILES, 1, dropout=0.0), "head": torch.nn.Linear(16, 2)})
    whole = {f"elmo.{name}": value for name, value in state.items()} | task["head"].state_dict(prefix="head.")
    assert task.state_dict().keys() == whole.keys()
    task.load_state_dict(whole)
    for name, value in task.state_dict().items():
        torch.testing.assert_close(value, whole[name], atol=1e-6, rtol=1e-6)
    found = task["elmo"](batch_to_ids(BATCHES[0]))["elmo_representations"][0]
    np.testing.assert_allclose(found.detach().numpy(), recorded["trained"], atol=CLOSE)
    del whole["elmo._elmo_lstm._elmo_lstm.forward_layer_1.state_linearity.bias"]
    with pytest.raises(RuntimeError, match=r"Missing key.*forward_stack.1.bias"):
        task.load_state_dict(whole)


def test_a_settled_start_gives_the_vectors_of_bilmo_in_every_call():
    expected = bilmo.load(PARITY).embed(BATCHES[0])
    elmo = Elmo(*FILES, 1, dropout=0.0, start="settled")
    for _ in range(2):
        found = elmo(batch_to_ids(BATCHES[0]))["elmo_representations"][0].detach().numpy()
        for row, vectors in zip(found, expected, strict=True):
            np.testing.assert_allclose(row[: len(vectors)], vectors, atol=CLOSE)
            assert not row[len(vectors) :].any()


def test_the_state_can_be_switched_off_and_reset_as_old_code_does():
    ids = batch_to_ids(BATCHES[0])
    elmo = Elmo(*FILES, 1, dropout=0.0)
    first, second = (elmo(ids)["elmo_representations"][0] for _ in range(2))
    assert not torch.allclose(first, second, atol=1e-3)
    elmo._elmo_lstm._elmo_lstm.reset_states()
    torch.testing.assert_close(elmo(ids)["elmo_representations"][0], first)
    elmo._elmo_lstm._elmo_lstm.stateful = False
    for _ in range(2):
        torch.testing.assert_close(elmo(ids)["elmo_representations"][0], first)


def test_the_carried_state_can_be_kept_and_given_back():
    elmo = Elmo(*FILES, 1, dropout=0.0)
    inside = elmo._elmo_lstm._elmo_lstm
    elmo(batch_to_ids(BATCHES[0]))
    kept = tuple(part.clone() for part in inside._states)
    expected = elmo(batch_to_ids(BATCHES[1]))["elmo_representations"][0]
    copy = pickle.loads(pickle.dumps(Elmo(*FILES, 1, dropout=0.0)))
    copy._elmo_lstm._elmo_lstm._states = kept
    assert torch.equal(copy(batch_to_ids(BATCHES[1]))["elmo_representations"][0], expected)
    inside._states = None
    assert not torch.equal(elmo(batch_to_ids(BATCHES[1]))["elmo_representations"][0], expected)


def test_modules_are_made_from_parameters():
    params = {"type": "elmo_token_embedder", "options_file": FILES[0], "weight_file": FILES[1], "projection_dim": 20}
    embedder = ElmoTokenEmbedder.from_params(vocab=None, params=params)
    word = [6, 5, 4, 3] + [0] * 46
    assert embedder(torch.tensor([[word, word]])).shape == (1, 2, 20)
    assert embedder(torch.tensor([[[word]]])).shape == (1, 1, 1, 20)


def test_cached_words_give_the_same_vectors_and_others_are_spelled():
    words = ["@@PADDING@@", *dict.fromkeys(word for sentence in BATCHES[0] for word in sentence)]
    ids = torch.zeros(3, 7, dtype=torch.long)
    for row, sentence in enumerate(BATCHES[0]):
        ids[row, : len(sentence)] = torch.tensor([words.index(word) for word in sentence])
    plain = Elmo(*FILES, 1, dropout=0.0)(batch_to_ids(BATCHES[0]))
    cached = Elmo(*FILES, 1, dropout=0.0, vocab_to_cache=words)
    assert "_elmo_lstm._word_embedding.weight" in cached.state_dict()
    for shape in ((3, 7), (3, 1, 7)):
        found = cached(batch_to_ids(BATCHES[0]).view(*shape, 50), ids.view(shape))
        assert torch.equal(found["mask"], plain["mask"].view(shape))
        vectors = found["elmo_representations"][0]
        torch.testing.assert_close(vectors, plain["elmo_representations"][0].view(*shape, 16), atol=1e-6, rtol=1e-5)
        cached._elmo_lstm._elmo_lstm.reset_states()
    unseen = cached(batch_to_ids(BATCHES[0]), ids + 99)  # as in AllenNLP: by their characters
    torch.testing.assert_close(unseen["elmo_representations"][0], plain["elmo_representations"][0])


@pytest.mark.parametrize("requires_grad", [True, False])
def test_gradients_reach_the_network_only_on_request(requires_grad):
    embedder = ElmoTokenEmbedder(*FILES, requires_grad=requires_grad, projection_dim=5)
    vectors = embedder(batch_to_ids(BATCHES[0]).view(3, 1, 7, 50))
    assert vectors.shape == (3, 1, 7, 5) and embedder.get_output_dim() == 5
    vectors.sum().backward()
    inside = [p.grad for name, p in embedder.named_parameters() if "_elmo_lstm" in name]
    assert all((gradient is not None) == requires_grad for gradient in inside) and len(inside) > 20
    outside = [p.grad for name, p in embedder.named_parameters() if "_elmo_lstm" not in name]
    assert all(gradient is not None for gradient in outside)
    assert {"_projection.weight", "_elmo.scalar_mix_0.gamma"} < embedder.state_dict().keys()


def test_gradients_of_words_equal_finite_differences():
    elmo = Elmo(*FILES, 1, requires_grad=True, dropout=0.0, start="zero").double()
    elmo._elmo_lstm._elmo_lstm._start = elmo._elmo_lstm._elmo_lstm._start._map(torch.Tensor.double)
    ids = batch_to_ids([["cat"], ["a", "b"]])

    def loss():
        return (elmo(ids)["elmo_representations"][0] ** 2).sum()

    loss().backward()
    table = elmo._elmo_lstm._token_embedder._encoder.chars.table
    place, step = (ord("c"), 1), 1e-5
    with torch.no_grad():
        table[place] += step
        up = loss()
        table[place] -= 2 * step
        assert table.grad[place] == pytest.approx(float(up - loss()) / (2 * step), rel=1e-4)


def test_another_module_may_stand_in_for_the_language_model():
    elmo = Elmo(None, None, 2, dropout=0.0, module=_ElmoBiLm(*FILES))
    assert elmo.get_output_dim() == 16
    assert len(elmo(batch_to_ids(BATCHES[0]))["elmo_representations"]) == 2
    with pytest.raises(ConfigurationError, match="must be None"):
        Elmo(*FILES, 1, module=torch.nn.Identity())


def test_a_model_of_bilmo_by_name_and_files_in_two_folders(tmp_path):
    elmo = Elmo("en", None, 1, start="settled", dropout=0.0)
    found = elmo(batch_to_ids([["The", "cat"]]))["elmo_representations"][0][0].detach().numpy()
    np.testing.assert_allclose(found, bilmo.load("en").embed([["The", "cat"]])[0], atol=CLOSE)
    (tmp_path / "o.json").write_bytes((PARITY / "options.json").read_bytes())
    assert Elmo(tmp_path / "o.json", FILES[1], 1).get_output_dim() == 16


def test_a_model_with_vectors_beside_the_characters_works_too(tmp_path):
    """Its words are found again from their character ids; one with the case of a name, one cut off, one unknown."""
    long = "a" * 60
    vocab = Vocab(["<S>", "</S>", "<UNK>", "the", "Cät", long[:48], long])
    config = bilmo.BiLMConfig(
        words=WordsConfig(
            chars=CharsConfig(width=4, filters=((1, 4), (2, 4)), highways=0),
            table=TableConfig(rows=len(vocab), width=5, given=True),
        ),
        cell=CellConfig(cells=12),
        width=8,
    )
    torch.manual_seed(3)
    bundle = Bundle(config, bilmo.BiLM(config).state_dict(), layout="made for a test", vocab=vocab)
    layouts.write(settled(bundle), tmp_path / "joined", "bilmo")
    sentences = [["the", "Cät", "the"], ["cät", long[:48]]]
    elmo = Elmo(tmp_path / "joined", None, 1, start="settled", dropout=0.0)
    found = elmo(batch_to_ids(sentences))["elmo_representations"][0].detach().numpy()
    for row, vectors in zip(found, bilmo.load(tmp_path / "joined").embed(sentences), strict=True):
        np.testing.assert_allclose(row[: len(vectors)], vectors, atol=CLOSE)
    cut = elmo(batch_to_ids([[long]]))["elmo_representations"][0]
    assert torch.equal(cut, elmo(batch_to_ids([[long[:48]]]))["elmo_representations"][0])


def test_a_model_without_skip_connections_works_too(tmp_path):
    from dataclasses import replace

    bundle = layouts.read(PARITY)
    bundle = replace(bundle, config=replace(bundle.config, skip=False))
    layouts.write(bundle, tmp_path / "plain", "allennlp")
    elmo = Elmo(tmp_path / "plain" / "options.json", tmp_path / "plain" / "weights.hdf5", 1, dropout=0.0)
    found = elmo(batch_to_ids(BATCHES[0]))["elmo_representations"][0].detach().numpy()
    for row, vectors in zip(found, bilmo.load(tmp_path / "plain", start="zero").embed(BATCHES[0]), strict=True):
        np.testing.assert_allclose(row[: len(vectors)], vectors, atol=CLOSE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scalar_mix_parameters": [1.0]}, "there must be 3"),
        ({"start": "warm"}, "start is 'warm'"),
        ({"options_file": "no.json"}, "no such options file"),
        ({"options_file": None}, "options_file is None"),
        ({"options_file": "zh", "weight_file": None}, "does not read words as bytes"),
        ({"options_file": "https://x.org/o.json"}, "downloads nothing"),
    ],
)
def test_wrong_arguments_say_what_is_accepted(arguments, message):
    given = {"options_file": FILES[0], "weight_file": FILES[1], "num_output_representations": 1} | arguments
    with pytest.raises(bilmo.BilmoError, match=message):
        Elmo(**given)


def test_the_default_model_is_the_installed_original():
    with pytest.raises(bilmo.BilmoError, match="bilmo get elmo-original"):
        ElmoEmbedder()
    with pytest.raises(bilmo.BilmoError, match="bilmo get elmo-original"):
        ElmoTokenEmbedder()


def test_the_embedder_of_version_0_9(recorded):
    sentences = json.loads((PARITY / "sentences.json").read_text(encoding="utf-8"))
    with np.load(PARITY / "vectors.npz") as file:
        expected = [file[f"carry{k}"] for k in range(len(sentences))]
    elmo = ElmoEmbedder(*FILES)
    found = list(elmo.embed_sentences(sentences, batch_size=3))
    for vectors, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(vectors, wanted, atol=CLOSE)
    settled = ElmoEmbedder(*FILES, start="settled")
    np.testing.assert_allclose(settled.embed_sentence(["a"]), settled.embed_batch([["a", "b"], ["a"]])[1], atol=1e-6)
    layers, mask = settled.batch_to_embeddings([["a", "b"], [], ["c"]])
    assert layers.shape == (3, 3, 2, 16) and mask.sum(dim=1).tolist() == [2, 0, 1]
    assert not layers[1].any()
    # As in AllenNLP, a sentence without tokens has the shape of the original model.
    assert settled.embed_sentence([]).shape == settled.embed_batch([["a"], []])[1].shape == (3, 0, 1024)
    assert elmo.elmo_bilm.num_layers == 3 and elmo.elmo_bilm.get_output_dim() == 16
    copy = pickle.loads(pickle.dumps(settled))
    np.testing.assert_array_equal(copy.embed_sentence(["a"]), settled.embed_sentence(["a"]))


def test_the_command_writes_the_file_of_allennlp(tmp_path, monkeypatch, capsys):
    lines = ["The cat sat .", "A dog", "The cat sat ."]
    (tmp_path / "in.txt").write_text("\n".join(lines), encoding="utf-8")
    expected = list(ElmoEmbedder(*FILES).embed_sentences([line.split() for line in lines], batch_size=2))
    common = ["--options-file", FILES[0], "--weight-file", FILES[1], "--batch-size", "2", "--cuda-device", "-1"]

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["allennlp", "elmo", *map(str, arguments), *common])
        main()

    for name, shown in (("all", lambda v: v), ("top", lambda v: v[-1]), ("average", lambda v: v.mean(axis=0))):
        command(tmp_path / "in.txt", tmp_path / "out.h5", f"--{name}")
        with h5py.File(tmp_path / "out.h5") as file:
            assert set(file) == {"0", "1", "2", "sentence_to_index"}
            for key, vectors in enumerate(expected):
                np.testing.assert_allclose(file[str(key)][...], shown(vectors), atol=1e-6)
                assert file[str(key)].dtype == np.float32
            assert file["sentence_to_index"].shape == (1,)
            assert json.loads(file["sentence_to_index"][0]) == {"The cat sat .": "2", "A dog": "1"}
    command(tmp_path / "in.txt", tmp_path / "out.h5", "--top", "--forget-sentences")
    with h5py.File(tmp_path / "out.h5") as file:
        assert set(file) == {"0", "1", "2"}
    (tmp_path / "in.txt").write_text("a b\nc\n", encoding="utf-8")
    command(tmp_path / "in.txt", tmp_path / "keys.h5", "--top", "--use-sentence-keys", "--file-friendly-logging")
    with h5py.File(tmp_path / "keys.h5") as file:
        assert set(file) == {"a b", "c"}
    for text, wrong in (("a\n\nb\n", "blank lines"), ("a\na\n", "occur twice"), ("a/b\n", "slash")):
        (tmp_path / "in.txt").write_text(text, encoding="utf-8")
        with pytest.raises(ConfigurationError, match=wrong):
            command(tmp_path / "in.txt", tmp_path / "no.h5", "--all", "--use-sentence-keys")
    with pytest.raises(SystemExit, match="slash"):  # without a traceback, where it is a program
        monkeypatch.delitem(sys.modules, "bilmo.plug.allennlp.__main__")
        runpy.run_module("bilmo.plug.allennlp", run_name="__main__")
    monkeypatch.setattr(sys, "stdin", io.StringIO("a b\nc\n"))
    command("-", tmp_path / "piped.h5", "--top", "--forget-sentences", "--include-package", "mine")
    with h5py.File(tmp_path / "piped.h5") as file:
        assert set(file) == {"0", "1"}
    assert not (tmp_path / "no.h5").exists()
    with pytest.raises(SystemExit):
        command(tmp_path / "in.txt", tmp_path / "no.h5")  # neither --all, --top nor --average
    assert "required" in capsys.readouterr().err
    with pytest.raises(ConfigurationError, match="accepted: all, top, average"):
        ElmoEmbedder(*FILES).embed_file(io.StringIO("a"), str(tmp_path / "no.h5"), "middle")

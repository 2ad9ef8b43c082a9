"""Word vectors computed beforehand: `bilmo word-cache`, and models that are loaded with its file."""

import pickle

import numpy as np
import pytest
import torch

import bilmo
import bilmo.embed.embedder
from bilmo.embed import word_cache_file as known
from bilmo.errors import DamagedFile, WeightsError
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.store import model_folder as folder
from bilmo.store.bundle import Bundle

TEXT = [["the", "cat", "字", "sat", "unseen"], [], ["new", "the"]]
HAS_INT8 = "fbgemm" in torch.backends.quantized.supported_engines
PRECISIONS = ["float32", *(["int8"] if HAS_INT8 else [])]


def write_model(path, seed):
    torch.manual_seed(seed)
    config = bilmo.BiLMConfig(
        words=WordsConfig(chars=CharsConfig(width=4, filters=((1, 8), (2, 8)), highways=1)),
        cell=CellConfig(cells=24),
        width=8,
    )
    folder.write(Bundle(config, bilmo.BiLM(config).state_dict(), layout="test"), path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("known") / "model", seed=1)


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("the cat\n\n字 the\n  sat \n\ud800".encode("utf-8", "replace").decode(), encoding="utf-8")
    return path


@pytest.mark.parametrize("precision", PRECISIONS)
def test_known_words_are_not_encoded_again_and_change_no_vector(model, words, tmp_path, monkeypatch, run, precision):
    out = tmp_path / "words.safetensors"
    done = run("word-cache", model, words, "-o", out, "--precision", precision)
    assert done.code == 0
    assert done.out == f"{out}: 7 words\n"  # the, cat, 字, sat, ?, and both boundaries
    expected = bilmo.load(model, precision=precision).layers(TEXT)
    elmo = bilmo.load(model, precision=precision, word_cache=out)
    encoded = []
    plain = elmo._runner.words._encoder
    monkeypatch.setattr(elmo._runner.words, "_encoder", lambda some: encoded.append(len(some.chars)) or plain(some))
    for a, b in zip(elmo.layers(TEXT), expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    assert sum(encoded) == 2  # unseen, new


def test_the_command_line_uses_the_file(model, words, tmp_path, monkeypatch, run):
    out = tmp_path / "words.safetensors"
    assert run("word-cache", model, words, "-o", out).code == 0
    loaded = []
    plain = bilmo.embed.load.load
    monkeypatch.setattr("bilmo.api.embed.load", lambda *a, **k: loaded.append(k) or plain(*a, **k))
    text = tmp_path / "text.txt"
    text.write_text("the cat sat\n", encoding="utf-8")
    assert run("embed", model, text, "-o", tmp_path / "v.h5", "--word-cache", out).code == 0
    assert loaded[0]["word_cache"] == out and loaded[0]["precision"] == "float32"
    if HAS_INT8:
        assert run("embed", model, text, "-o", tmp_path / "w.h5", "--precision", "int8").code == 0
        assert loaded[1]["precision"] == "int8"
        failed = run("embed", model, text, "-o", tmp_path / "x.h5", "--word-cache", out, "--precision", "int8")
        assert failed.code == 1
        assert "was made with precision float32, but the model is loaded with int8" in failed.err
        assert not (tmp_path / "x.h5").exists()


def test_a_file_of_another_model_is_refused(model, words, tmp_path, run):
    out = tmp_path / "words.safetensors"
    assert run("word-cache", model, words, "-o", out).code == 0
    other = write_model(tmp_path / "other", seed=2)
    with pytest.raises(WeightsError, match=r"belong to another model\. Make them again with `bilmo word-cache`"):
        bilmo.load(other, word_cache=out)


def test_the_recurrent_weights_may_differ_for_words_know_nothing_of_them(model, tmp_path):
    bundle = folder.read(model)
    known.write(tmp_path / "w", ["a"], np.ones((1, 8), np.float32), bundle, "float32")
    name = "forward_stack.0.bias"
    changed = Bundle(bundle.config, bundle.weights | {name: bundle.weights[name] + 1}, layout="test")
    words, vectors = known.read(tmp_path / "w", changed, "float32")
    assert words == ["a"] and vectors.tolist() == [[1.0] * 8]


@pytest.mark.parametrize(
    "content", [b"", b"no safetensors", b"\x08\0\0\0\0\0\0\0{}      "], ids=["empty", "text", "bare"]
)
def test_what_is_no_such_file_is_refused(model, tmp_path, content):
    path = tmp_path / "words"
    path.write_bytes(content)
    with pytest.raises((DamagedFile, WeightsError), match="bilmo word-cache"):
        bilmo.load(model, word_cache=path)


def test_a_file_that_is_not_there_is_refused(model, tmp_path):
    with pytest.raises(WeightsError, match="there is no such file of word vectors"):
        bilmo.load(model, word_cache=tmp_path / "none")


def test_a_cut_file_is_refused(model, words, tmp_path, run):
    out = tmp_path / "words.safetensors"
    assert run("word-cache", model, words, "-o", out).code == 0
    whole = out.read_bytes()
    for length in (4, 100, len(whole) - 1):
        out.write_bytes(whole[:length])
        with pytest.raises(DamagedFile, match="cannot be read"):
            bilmo.load(model, word_cache=out)


def test_no_words_are_an_error_and_nothing_is_written(model, tmp_path, run):
    blank = tmp_path / "blank.txt"
    blank.write_text(" \n\n", encoding="utf-8")
    failed = run("word-cache", model, blank, "-o", tmp_path / "out")
    assert failed.code == 1 and "no words; every line is blank" in failed.err
    assert [path.name for path in tmp_path.iterdir()] == ["blank.txt"]


def test_an_unknown_precision_is_refused(model):
    with pytest.raises(bilmo.BilmoError, match="precision is 'int4'; accepted: float32, int8"):
        bilmo.load(model, precision="int4")


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_pickled_model_gives_the_same_vectors_and_knows_the_same_words(model, precision):
    plain = bilmo.load(model, precision=precision, lang="west", batch_tokens=64)
    words = ["the", "cat"]
    odd = np.ones((2, 8), dtype=np.float32)  # no encoder would give these, so they show where they come from
    elmo = bilmo.Embedder(plain.bundle, precision=precision, word_vectors=(words, odd))
    for one in (plain, elmo):
        again = pickle.loads(pickle.dumps(one))
        for a, b in zip(one.layers(TEXT), again.layers(TEXT), strict=True):
            assert np.array_equal(a, b)
    assert np.array_equal(pickle.loads(pickle.dumps(elmo)).word_vectors(words), odd)
    assert pickle.loads(pickle.dumps(plain)).split("it's")[0] == ["it's"]

"""ONNX files with the real onnxruntime: the vectors of bilmo, for every kind of network, and without torch."""

import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bilmo
from bilmo.embed.loaded import settled
from bilmo.errors import CannotConvert, ConfigError, DamagedFile, NotAModel, OutputError
from bilmo.ids.chars import CharTable
from bilmo.ids.vocab import Vocab
from bilmo.plug import onnx as plug
from bilmo.plug.onnx import convert as writer
from bilmo.store.bundle import Bundle
from fresh import fresh
from program import program

from strategies import ENCODERS, ENTRIES, VOCABULARY, configs, random_bilm, seeds, texts

ROOT = Path(__file__).parents[1]
LIGHT = Path(os.environ.get("LIGHT_PYTHON", ROOT / ".venv-light" / "bin" / "python"))
"""A Python with bilmo and the packages that the guide names, without torch; `make test-plug` creates it."""
CLOSE = 1e-5


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape and one.dtype == np.float32
        np.testing.assert_allclose(one, other, atol=CLOSE, rtol=CLOSE)


def exported(model, tmp_path, precision="float32"):
    plug.export(model, tmp_path / "model.onnx", precision=precision)
    return plug.load(tmp_path / "model.onnx", threads=1)


def bundle_of(config, seed):
    chars = config.words.chars
    return Bundle(
        config,
        random_bilm(config, seed).state_dict(),
        layout="drawn",
        vocab=Vocab(VOCABULARY) if config.words.table else None,
        chars=CharTable(ENTRIES, chars.max_characters) if chars and chars.kind == "unicode" else None,
    )


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_kind_of_network_gives_the_layers_of_bilmo(encoder):
    @settings(max_examples=8, deadline=None)
    @given(config=configs(encoder), seed=seeds(), sentences=st.lists(texts(0), min_size=1, max_size=2))
    def check(config, seed, sentences):
        elmo = bilmo.Embedder(settled(bundle_of(config, seed)))
        with tempfile.TemporaryDirectory() as folder:
            found = exported(elmo, Path(folder))
            onnx.checker.check_model(str(Path(folder) / "model.onnx"), full_check=True)
        for some in sentences:  # batches of different sizes through one file
            assert_same(found.layers(some), elmo.layers(some))

    check()


@pytest.fixture(scope="module")
def english(tmp_path_factory):
    return bilmo.load("en"), exported("en", tmp_path_factory.mktemp("en"))


def some_sentences(elmo, number):
    """Words of the vocabulary and others, in sentences of 1 to 300 tokens."""
    random = np.random.default_rng(0)
    words = [*elmo.bundle.vocab.words[3:3000], "xqzzy", "Zürich", "naïve", "😀", "宝玉", "a" * 99]
    lengths = [1, 2, 300, *np.exp(random.uniform(0, np.log(300.5), number - 3)).astype(int)]
    return [list(random.choice(words, length)) for length in lengths]


def test_the_included_model_gives_the_same_vectors(english):
    elmo, found = english
    sentences = some_sentences(elmo, 200)
    assert_same(found.layers(sentences), elmo.layers(sentences))


def test_the_chinese_model_differs_by_rounding_only(tmp_path):
    """Its vectors have values up to 7, and float32 itself, in torch, is up to 1.6e-5 away from float64."""
    elmo = bilmo.load("zh")
    sentences = some_sentences(elmo, 200)
    for one, other in zip(exported("zh", tmp_path).layers(sentences), elmo.layers(sentences), strict=True):
        assert np.abs(one - other).max() < 5 * CLOSE
        assert (np.linalg.norm(one - other, axis=-1) <= CLOSE * np.linalg.norm(other, axis=-1)).all()


def test_texts_are_embedded_as_by_bilmo(english):
    elmo, found = english
    texts = ["He didn't sit. The bank was closed!", "", "already tokenized text .", "Hello\nworld"]
    for mix in ("mean", "top", "concat", 0, (0, 2)):
        for text, one, other in zip(texts, found.embed(texts, mix=mix), elmo.embed(texts, mix=mix), strict=True):
            assert one.tokens == other.tokens, text
            assert_same([one.vectors], [other.vectors])
    for pool in ("mean", "max"):
        assert_same([found.embed(texts, pool=pool)], [elmo.embed(texts, pool=pool)])
        assert found.embed([], pool=pool, mix="concat").shape == (0, 1024)
    one = found.embed(texts[0], normalize=True, dtype="float16")
    np.testing.assert_allclose(one.vectors, elmo.embed(texts[0], normalize=True).vectors, atol=1e-3)
    assert one.vectors.dtype == np.float16
    assert found.embed([["The", "cat"]], mix="all")[0].shape == (3, 2, 512)
    assert found.embed([]) == [] and found.layers([]) == []


def test_words_are_computed_some_at_a_time(model, tmp_path, monkeypatch):
    elmo = bilmo.load(model)
    sentences = [[f"word{n}" for n in range(40)], ["x" * 5000, "a"]]
    monkeypatch.setattr(writer, "CHUNK_ACTIVATIONS", 500)  # so that a turn has one word or a few
    assert_same(exported(model, tmp_path).layers(sentences), elmo.layers(sentences))


def test_int8_is_smaller_and_close(english, tmp_path):
    elmo, _ = english
    found = exported("en", tmp_path, "int8")
    texts = (ROOT / "examples" / "senses.tsv").read_text(encoding="utf-8").splitlines()
    sentences = [line.split("\t")[2].split() for line in texts]
    for one, other in zip(found.layers(sentences), elmo.layers(sentences), strict=True):
        cosines = (one * other).sum(-1) / np.linalg.norm(one, axis=-1) / np.linalg.norm(other, axis=-1)
        assert cosines.min() > 0.999
    alone = found.layers(sentences[:1])[0]  # the scale of a row is its own
    np.testing.assert_allclose(found.layers(sentences)[0], alone, atol=1e-4)
    plug.export("en", tmp_path / "whole.onnx")
    # Word vectors keep their numbers.
    assert (tmp_path / "model.onnx").stat().st_size < 0.6 * (tmp_path / "whole.onnx").stat().st_size


def test_a_chinese_model_splits_text_by_its_dictionary(tmp_path):
    from dataclasses import replace

    from bilmo.text.dictionary import Dictionary

    bundle = replace(bilmo.load("zh").bundle, dictionary=Dictionary.of(["怡红院"]))
    elmo = bilmo.Embedder(bundle)
    found = exported(elmo, tmp_path)
    text = "宝玉回到怡红院。黛玉大喜。"
    assert found.embed(text).tokens == elmo.embed(text).tokens and "怡红院" in found.embed(text).tokens
    assert_same([found.embed(text).vectors], [elmo.embed(text).vectors])


def test_the_command_writes_what_load_reads(model, tmp_path):
    done = program(tmp_path, "export", str(model), "-o", "out.onnx")
    assert done.code == 0 and "out.onnx" in done.out
    assert_same(plug.load(tmp_path / "out.onnx").layers([["a"]]), bilmo.load(model).layers([["a"]]))
    again = program(tmp_path, "export", str(model), "-o", "out.onnx")
    assert again.code == 1 and "already exists" in again.err and "Traceback" not in again.err
    for arguments in (("nothing", "-o", "x.onnx"), (str(model), "-o", "no/folder/x.onnx")):
        wrong = program(tmp_path, "export", *arguments)
        assert wrong.code == 1 and wrong.err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "out.onnx"]


def test_files_that_are_no_exported_model_are_refused(model, tmp_path):
    with pytest.raises(NotAModel, match="bilmo export MODEL"):
        plug.load(tmp_path / "none.onnx")
    (tmp_path / "text.onnx").write_text("not a graph")
    with pytest.raises(DamagedFile, match="Export the model again"):
        plug.load(tmp_path / "text.onnx")
    exported(model, tmp_path)
    whole = (tmp_path / "model.onnx").read_bytes()
    (tmp_path / "part.onnx").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DamagedFile, match=r"part\.onnx"):
        plug.load(tmp_path / "part.onnx")
    other = onnx.load(tmp_path / "model.onnx")
    del other.metadata_props[:]
    onnx.save(other, tmp_path / "other.onnx")
    with pytest.raises(NotAModel, match="did not write it"):
        plug.load(tmp_path / "other.onnx")


def test_wrong_settings_are_refused(model, tmp_path, monkeypatch):
    found = exported(model, tmp_path)
    for wrong in ({"mix": "weighted"}, {"mix": 3}, {"mix": ()}, {"pool": "sum"}, {"dtype": "float64"}):
        with pytest.raises(ConfigError, match=r"found|accepted"):
            found.embed(["a"], **wrong)
    with pytest.raises(ConfigError, match="precision"):
        plug.export(model, tmp_path / "x.onnx", precision="int4")
    with pytest.raises(OutputError, match="already exists"):
        plug.export(model, tmp_path / "model.onnx")
    monkeypatch.setattr(writer, "LARGEST", 1000)
    with pytest.raises(CannotConvert, match="2 GiB"):
        plug.export(model, tmp_path / "x.onnx")
    assert not (tmp_path / "x.onnx").exists()


ALONE = """
import sys
import numpy as np
from bilmo.plug import onnx
elmo = onnx.load(sys.argv[1])
found = elmo.embed(["He didn't sit on the bank.", "a"])
np.savez(sys.argv[2], *(one.vectors for one in found))
assert not {"opencc", "rjieba"} & sys.modules.keys()  # they are needed for Chinese only
assert onnx.load(sys.argv[1], lang="zh").split("宝玉大喜。") == [["宝玉", "大喜", "。"]]
print("torch" in sys.modules, " ".join(found[0].tokens))
"""


@pytest.mark.parametrize("python", ["here", "light"])
def test_embedding_needs_no_torch(english, tmp_path, python):
    plug.export("en", tmp_path / "en.onnx")
    if python == "here":
        said = fresh(ALONE, tmp_path / "en.onnx", tmp_path / "out.npz")
    else:
        if not LIGHT.exists():
            pytest.skip("`make test-plug` creates the environment without torch")
        names = [LIGHT, "-c", ALONE, tmp_path / "en.onnx"]
        done = subprocess.run(
            [*map(str, names), str(tmp_path / "out.npz")],
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        said = done.stdout
        missing = subprocess.run([LIGHT, "-c", "import torch"], capture_output=True, cwd=tmp_path)
        assert missing.returncode != 0
    assert said.strip() == "False He did n't sit on the bank ."
    expected = english[0].embed(["He didn't sit on the bank.", "a"])
    with np.load(tmp_path / "out.npz") as found:
        assert_same([found[name] for name in found.files], [one.vectors for one in expected])

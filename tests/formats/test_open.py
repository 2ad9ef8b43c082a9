"""The layout of a path is detected; the error for any other path lists the layouts."""

from __future__ import annotations

import os
from pathlib import Path

import h5py
import numpy as np
import pytest

import bilmo
from bilmo.errors import BilmoError, NotAModel, VocabError, WeightsError
from bilmo.formats import open as layouts
from bilmo.formats.bilmtf import write as write_allennlp

import old_models
from old_models import WORDS, write_checkpoint, write_hdf5, write_manylangs

KNOWN = (
    "config.json and model.safetensors (bilmo)",
    "encoder.pkl and token_embedder.pkl (ELMoForManyLangs)",
    "options.json and a checkpoint's .index file (bilm-tf)",
    "options.json and HDF5 weights (bilm-tf, AllenNLP)",
)


def write_own(folder: Path) -> None:
    write_hdf5(folder / "source")
    layouts.write(layouts.read(folder / "source"), folder / "model", "bilmo")


def test_every_layout_is_detected(tmp_path):
    write_hdf5(tmp_path / "hdf5")
    write_checkpoint(tmp_path / "checkpoint")
    write_manylangs(tmp_path / "manylangs")
    write_own(tmp_path)
    found = {name: layouts.read(tmp_path / name).layout for name in ("hdf5", "checkpoint", "manylangs", "model")}
    assert found == {
        "hdf5": "options.json and HDF5 weights (bilm-tf, AllenNLP)",
        "checkpoint": "TensorFlow checkpoint model.ckpt-935588 (bilm-tf)",
        "manylangs": "ELMoForManyLangs",
        "model": "bilmo folder",
    }


def test_a_checkpoint_is_preferred_to_hdf5_because_it_has_the_softmax(tmp_path):
    old = write_checkpoint(tmp_path, seed=1)
    write_hdf5(tmp_path, seed=2)
    old_models.write_vocab(tmp_path, old)
    assert layouts.read(tmp_path).layout.startswith("TensorFlow checkpoint")
    assert layouts.read(tmp_path / "weights.hdf5").layout.startswith("options.json and HDF5")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_file_in_our_folder_means_the_folder(tmp_path, name):
    write_own(tmp_path)
    assert layouts.read(tmp_path / "model" / name).layout == "bilmo folder"


@pytest.mark.parametrize("name", ["encoder.pkl", "token_embedder.pkl", "config.json"])
def test_a_file_in_an_elmo_for_many_langs_folder_means_the_folder(tmp_path, name):
    write_manylangs(tmp_path)
    assert layouts.read(tmp_path / name).layout == "ELMoForManyLangs"


def test_a_path_can_be_a_string(tmp_path):
    write_hdf5(tmp_path)
    assert bilmo.load(str(tmp_path)).config == bilmo.load(tmp_path).config


def test_the_error_for_a_path_that_is_not_a_model_lists_the_layouts(tmp_path):
    (tmp_path / "b.txt").write_text("hello")
    (tmp_path / "a").mkdir()
    (tmp_path / "empty").mkdir()
    for path, says in (
        (tmp_path, "is not a model; it contains a, b.txt, empty."),
        (tmp_path / "empty", "is not a model; it contains nothing."),
        (tmp_path / "b.txt", "is not a model."),
    ):
        with pytest.raises(NotAModel) as caught:
            layouts.read(path)
        assert str(caught.value).startswith(f"{path}: {says}")
        assert all(layout in str(caught.value) for layout in KNOWN)


@pytest.mark.parametrize(
    "name",
    ["nowhere", "nowhere/at/all", "file/inside", "x" * 300, "x.index", "x.hdf5", "x.zip", "x\0y", "loop"],
    ids=repr,
)
def test_a_missing_path_is_reported(tmp_path, name):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(NotAModel, match=r"there is no such file or folder|File name too long"):
        layouts.read(tmp_path / name)


def test_a_path_that_is_neither_a_file_nor_a_folder_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotAModel, match="is neither a file nor a folder"):
        layouts.read(tmp_path / "pipe")


def test_a_named_pipe_in_a_model_folder_is_never_opened(tmp_path):
    write_hdf5(tmp_path)
    os.mkfifo(tmp_path / "pipe.hdf5")
    assert layouts.read(tmp_path).notes == []


def test_empty_files_are_refused(tmp_path):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(BilmoError, match=r"config\.json: is not JSON"):
        layouts.read(tmp_path)


def test_writing_returns_what_is_dropped(tmp_path):
    write_checkpoint(tmp_path / "old")
    bundle = layouts.read(tmp_path / "old")
    assert layouts.write(bundle, tmp_path / "a", "bilmo") == []
    assert layouts.write(bundle, tmp_path / "b", "allennlp") == ["the softmax"]
    assert sorted(file.name for file in (tmp_path / "b").iterdir()) == ["options.json", "vocab.txt", "weights.hdf5"]


def test_nothing_is_left_of_a_model_that_could_not_be_written(tmp_path, monkeypatch):
    write_hdf5(tmp_path / "old")
    bundle = layouts.read(tmp_path / "old")

    def broken(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bilmo.formats.bilmtf.old_arrays", broken)
    with pytest.raises(BilmoError, match=r"new: cannot be written \(No space left on device\)"):
        write_allennlp(bundle, tmp_path / "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["old"]


# Precomputed word vectors


def cached(folder: Path, arrays: dict[str, np.ndarray]) -> Path:
    folder.mkdir()
    old_models.write_arrays(folder / "cached.hdf5", arrays)
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    return folder / "cached.hdf5"


def test_precomputed_words_are_used_and_others_come_from_the_character_cnn(tmp_path):
    write_hdf5(tmp_path / "model")
    values = np.arange(4 * len(WORDS), dtype=np.float32).reshape(-1, 4)
    path = cached(tmp_path / "cache", {"embedding": values})
    plain = bilmo.load(tmp_path / "model").layers([["The", "unseen", "cat"]])[0]
    found = bilmo.load(tmp_path / "model", word_cache=path).layers([["The", "unseen", "cat"]])[0]
    assert np.array_equal(found[0, 0], np.tile(values[WORDS.index("The")], 2))
    assert np.array_equal(found[0, 2], np.tile(values[8], 2))  # of a repeated word, the last one
    assert np.allclose(found[0, 1], plain[0, 1], atol=1e-5)
    assert not np.allclose(found[1:], plain[1:])


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"embedding": np.ones((10, 5), np.float32)}, r"of shape \(words, 4\); found \{'embedding': \(10, 5\)\}"),
        ({"embedding": np.ones(10, np.float32)}, "of shape"),
        ({"other": np.ones((10, 4), np.float32)}, "of shape"),
        ({"embedding": np.full((10, 4), np.nan, np.float32)}, "40 of 40 values are not finite"),
    ],
    ids=["another width", "one axis", "another name", "no numbers"],
)
def test_a_cache_that_does_not_fit_is_refused(tmp_path, arrays, says):
    write_hdf5(tmp_path / "model")
    with pytest.raises(WeightsError, match=says):
        bilmo.load(tmp_path / "model", word_cache=cached(tmp_path / "cache", arrays))


@pytest.mark.parametrize("content", [None, "<S>\n</S>\n<UNK>\n", "a\n" * 10], ids=["none", "too short", "no marks"])
def test_a_cache_without_its_vocabulary_is_refused(tmp_path, content):
    write_hdf5(tmp_path / "model")
    path = cached(tmp_path / "cache", {"embedding": np.ones((10, 4), np.float32)})
    (path.parent / "vocab.txt").unlink()
    if content:
        (path.parent / "vocab.txt").write_text(content)
    with pytest.raises(VocabError, match=r"vocab.txt"):
        bilmo.load(tmp_path / "model", word_cache=path)


def test_a_missing_cache_is_reported(tmp_path):
    write_hdf5(tmp_path / "model")
    with pytest.raises(BilmoError, match=r"nowhere.hdf5"):
        bilmo.load(tmp_path / "model", word_cache=tmp_path / "nowhere.hdf5")


@pytest.mark.parametrize(
    "write, name",
    [
        (write_hdf5, "options.json"),
        (write_hdf5, "vocab.txt"),
        (write_hdf5, "weights.hdf5"),
        (write_checkpoint, "options.json"),
        (write_checkpoint, "vocab.txt"),
        (write_manylangs, "config.json"),
        (write_manylangs, "other.json"),
        (write_manylangs, "char.dic"),
        (write_manylangs, "word.dic"),
        (write_manylangs, "encoder.pkl"),
    ],
)
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_a_device_in_a_folder_is_not_read(tmp_path, write, name, kind):
    write(tmp_path / "old")
    for path in (tmp_path / "old" / name, tmp_path / "old" / "more.txt"):
        path.unlink(missing_ok=True)
        os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    if name in ("other.json", "vocab.txt"):  # these are not needed
        assert layouts.read(tmp_path / "old").weights
    else:
        with pytest.raises(BilmoError, match=f"{name}.*is not a file|is not a model|no options.json"):
            layouts.read(tmp_path / "old")


def test_a_layer_number_of_many_digits_is_not_a_layer(tmp_path):
    write_hdf5(tmp_path / "old")
    with h5py.File(tmp_path / "old" / "weights.hdf5", "a") as file:
        file[f"RNN_0/RNN/MultiRNNCell/Cell{'9' * 5000}/LSTMCell/B"] = np.zeros(3, dtype=np.float32)
    assert "not used: RNN_0/RNN/MultiRNNCell/Cell9999" in " ".join(layouts.read(tmp_path / "old").notes)

"""Options with HDF5 weights or a checkpoint: every variant that bilm-tf could write, against its own arithmetic."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

import bilmo
from bilmo.embed.loaded import settled
from bilmo.errors import (
    BilmoError,
    CannotConvert,
    ConfigError,
    DamagedFile,
    NoSoftmax,
    NotAModel,
    TextError,
    VocabError,
    WeightsError,
)
from bilmo.formats import bilmtf
from bilmo.formats import open as layouts
from bilmo.net.config import BiLMConfig, CellConfig, CharsConfig, TableConfig, WordsConfig
from bilmo.store.bundle import Bundle

import old_models
from old_models import MARKS, SENTENCES, WORDS, cuts, flips, write_checkpoint, write_hdf5

VARIANTS = {
    "plain": {},
    "without skip connections": {"skip": False},
    "three layers": {"layers": 3},
    "one layer": {"layers": 1},
    "no highway": {"highways": 0},
    "three highways": {"highways": 3},
    "tanh": {"activation": "tanh"},
    "one filter": {"filters": ((5, 7),)},
    "short words": {"longest": 12},
    "no projection of the cells": {"projection": False},
    "no projection of the characters": {"cnn_projection": False, "width": 7, "cells": 9},
    "neither projection": {"cnn_projection": False, "projection": False, "width": 7},
    "a word projection that changes no width": {"width": 7, "cells": 9},
    "no clips": {"cell_clip": None, "proj_clip": None},
    "clips of zero": {"cell_clip": 0, "proj_clip": 0},
    "narrow clips": {"cell_clip": 0.2, "proj_clip": 0.1},
    "words": {"words": True},
    "words, one layer": {"words": True, "layers": 1},
}
ONE_WAY = {
    "forward only": {"directions": (0,)},
    "forward only, one layer": {"directions": (0,), "layers": 1},
    "words, forward only": {"directions": (0,), "words": True},
}


def tensors(path: Path) -> dict[str, bytes]:
    return bits(layouts.read(path))


def bits(bundle: Bundle) -> dict[str, bytes]:
    return {name: value.numpy().tobytes() for name, value in bundle.weights.items()}


def same_model(a: Bundle, b: Bundle) -> None:
    """The same network, equal to the bit."""
    assert a.config == b.config
    assert {name: value.shape for name, value in a.weights.items()} == {n: v.shape for n, v in b.weights.items()}
    assert bits(a) == bits(b)


def assert_arithmetic(path: Path, old: old_models.Old) -> None:
    """Every layer of every sentence equals that of the old system's arithmetic."""
    found = bilmo.load(path, start="zero").layers(SENTENCES)
    for sentence, layers in zip(SENTENCES, found, strict=True):
        expected, _ = old_models.bilmtf_layers(old, sentence)
        assert layers.shape == expected.shape
        assert np.abs(layers - expected).max(initial=0) < 1e-5


# Variants


@pytest.mark.parametrize("variant", VARIANTS | ONE_WAY)
def test_every_variant_gives_the_vectors_of_the_old_rules(tmp_path, variant):
    old = write_hdf5(tmp_path, seed=1, **(VARIANTS | ONE_WAY)[variant])
    assert_arithmetic(tmp_path, old)


@pytest.mark.parametrize("variant", VARIANTS | ONE_WAY)
def test_names_as_the_dump_spells_them_are_the_same_model(tmp_path, variant):
    old = write_hdf5(tmp_path / "plain", seed=2, **(VARIANTS | ONE_WAY)[variant])
    write_hdf5(tmp_path / "dumped", old, as_dumped=True)
    same_model(layouts.read(tmp_path / "dumped"), layouts.read(tmp_path / "plain"))


def test_the_dump_of_one_layer_or_one_direction_has_other_names(tmp_path):
    names = {}
    for name, sizes in {"one layer": {"layers": 1}, "forward": {"directions": (0,)}}.items():
        write_hdf5(tmp_path / name, as_dumped=True, **sizes)
        names[name] = set(old_models.read_arrays(tmp_path / name / "weights.hdf5"))
    assert "RNN_1/RNN/LSTMCell/W_P_0" in names["one layer"]
    assert "rnn/MultiRNNCell/Cell1/LSTMCell/projection/kernel" in names["forward"]


@pytest.mark.parametrize("variant", VARIANTS | ONE_WAY)
def test_a_checkpoint_is_the_same_model_as_the_dump_of_its_arrays(tmp_path, variant):
    old = write_checkpoint(tmp_path / "checkpoint", seed=3, **(VARIANTS | ONE_WAY)[variant])
    write_hdf5(tmp_path / "hdf5", old)
    found = layouts.read(tmp_path / "checkpoint")
    assert found.layout == "TensorFlow checkpoint model.ckpt-935588 (bilm-tf)"
    assert found.has_softmax
    same_model(found, layouts.read(tmp_path / "hdf5"))
    assert_arithmetic(tmp_path / "checkpoint", old)


@pytest.mark.parametrize("ending", ["", ".index"], ids=["by the names its files have in common", "by its index"])
def test_a_checkpoint_can_be_given_by_its_prefix_or_index_file(tmp_path, ending):
    write_checkpoint(tmp_path, step=1250)
    write_checkpoint(tmp_path, seed=1, step=2500)
    older = layouts.read(tmp_path / f"model.ckpt-1250{ending}")
    assert older.layout == "TensorFlow checkpoint model.ckpt-1250 (bilm-tf)"
    assert bits(older) != tensors(tmp_path)


def test_the_carried_state_is_that_of_the_old_rules(tmp_path):
    old = write_hdf5(tmp_path, seed=4)
    elmo = bilmo.load(tmp_path, start="carry")
    state = None
    for sentence in SENTENCES:
        expected, state = old_models.bilmtf_layers(old, sentence, state)
        assert np.abs(elmo.layers([sentence])[0] - expected).max(initial=0) < 1e-5


def test_a_table_of_262_rows_is_one_of_261_after_a_row_for_padding(tmp_path):
    old = write_hdf5(tmp_path / "old", seed=5)
    write_hdf5(tmp_path / "new", old, rows=262)
    new = layouts.read(tmp_path / "new")
    same_model(new, layouts.read(tmp_path / "old"))
    assert "char_embed has 262 rows: the first, for padding, is not used" in new.notes
    assert layouts.read(tmp_path / "old").notes == []


@pytest.mark.parametrize("rows", [0, 1, 260, 263, 300])
def test_other_numbers_of_characters_are_refused(tmp_path, rows):
    old = write_hdf5(tmp_path)
    write_hdf5(tmp_path, replace(old, arrays=old.arrays | {"char_embed": np.zeros((rows, 3), np.float32)}))
    with pytest.raises(WeightsError, match=f"char_embed has {rows} rows; accepted: 261 .* and 262"):
        layouts.read(tmp_path)


@pytest.mark.parametrize("dtype", ["<f8", ">f8", ">f4"])
def test_float64_and_transposed_arrays_hold_the_same_model(tmp_path, dtype):
    old = write_hdf5(tmp_path / "plain", seed=6)
    write_hdf5(tmp_path / "other", old, dtype=dtype)
    same_model(layouts.read(tmp_path / "other"), layouts.read(tmp_path / "plain"))


def test_float16_values_are_read_exactly(tmp_path):
    old = write_hdf5(tmp_path, seed=7, dtype="<f2")
    halved = {name: array.astype(np.float16).astype(np.float32) for name, array in old.arrays.items()}
    assert_arithmetic(tmp_path, replace(old, arrays=halved))


def test_chunked_and_compressed_datasets_are_read(tmp_path):
    old = write_hdf5(tmp_path / "plain", seed=8)
    write_hdf5(tmp_path / "packed", old)
    with h5py.File(tmp_path / "packed" / "weights.hdf5", "w") as file:
        for name, array in old.arrays.items():
            file.create_dataset(name, data=array, chunks=True, compression="gzip", shuffle=True, fletcher32=True)
    same_model(layouts.read(tmp_path / "packed"), layouts.read(tmp_path / "plain"))


def test_only_the_backward_direction(tmp_path):
    old = write_hdf5(tmp_path, directions=(1,), seed=9)
    bundle = layouts.read(tmp_path)
    assert bundle.config.directions == ("backward",)
    assert "one direction only: backward" in bundle.notes
    assert_arithmetic(tmp_path, old)


def test_one_direction_of_a_model_that_says_both_is_refused(tmp_path):
    write_hdf5(tmp_path, directions=(0,), more_options={"bidirectional": True})
    with pytest.raises(WeightsError, match="says bidirectional, but there are weights for the forward direction only"):
        layouts.read(tmp_path)


def test_a_projection_wider_than_the_cells_is_refused(tmp_path):
    write_hdf5(tmp_path, projection=False)
    options = json.loads((tmp_path / "options.json").read_text())
    options["lstm"]["projection_dim"] = 9
    old_models.write_json(tmp_path / "options.json", options)
    with pytest.raises(ConfigError, match=r"options\.json: projection_dim 9 is larger than dim 4"):
        layouts.read(tmp_path)


# Options


def test_unknown_keys_are_ignored(tmp_path):
    old = write_hdf5(tmp_path, more_options={"reverse": True, "projection_after_highway": 3, "n_epochs": "x"})
    assert_arithmetic(tmp_path, old)


@pytest.mark.parametrize("value", ["missing", None, False])
def test_skip_connections_are_off_by_default(tmp_path, value):
    old = write_hdf5(tmp_path)
    del old.options["lstm"]["use_skip_connections"]
    if value != "missing":
        old.options["lstm"]["use_skip_connections"] = value
    old_models.write_json(tmp_path / "options.json", old.options)
    assert layouts.read(tmp_path).config.skip is False
    assert_arithmetic(tmp_path, old)


def test_highways_clips_and_longest_word_have_the_old_defaults(tmp_path):
    old = write_hdf5(tmp_path, highways=0)
    for part, names in {"lstm": ("cell_clip", "proj_clip"), "char_cnn": ("n_highway", "n_characters")}.items():
        for name in names:
            del old.options[part][name]
    del old.options["char_cnn"]["max_characters_per_token"]
    old_models.write_json(tmp_path / "options.json", old.options)
    config = layouts.read(tmp_path).config
    assert (config.cell.cell_clip, config.cell.projection_clip) == (None, None)
    assert (config.words.chars.highways, config.words.chars.max_characters) == (0, 50)


BAD_OPTIONS = {
    "no lstm": ({"lstm": None}, "lstm"),
    "no sizes": ({"lstm": {"dim": 4}}, "lstm.projection_dim"),
    "a word for a number": ({"lstm": {"dim": "many", "projection_dim": 4, "n_layers": 2}}, "lstm.dim"),
    "no layers": ({"lstm": {"dim": 6, "projection_dim": 4, "n_layers": 0}}, "layers is 0"),
    "too many layers": ({"lstm": {"dim": 6, "projection_dim": 4, "n_layers": 10**9}}, "layers is 1000000000"),
    "no width": ({"lstm": {"dim": 6, "projection_dim": 0, "n_layers": 2}}, "width is 0"),
    "a clip below zero": ({"lstm": {"dim": 6, "projection_dim": 4, "n_layers": 2, "cell_clip": -3}}, "cell_clip is -3"),
    "an unknown activation": ({"char_cnn": {"activation": "gelu"}}, "char_cnn.activation"),
    "no filters": ({"char_cnn": {"filters": [], "activation": "relu", "embedding": {"dim": 3}}}, "at least one filter"),
    "a filter of no width": (
        {"char_cnn": {"filters": [[0, 3]], "activation": "relu", "embedding": {"dim": 3}}},
        "filter_width is 0",
    ),
    "filters wider than a word": (
        {"char_cnn": {"filters": [[60, 3]], "activation": "relu", "embedding": {"dim": 3}}},
        "max_characters is 50",
    ),
}


@pytest.mark.parametrize("bad", BAD_OPTIONS)
def test_bad_options_are_named_with_their_file(tmp_path, bad):
    change, says = BAD_OPTIONS[bad]
    write_hdf5(tmp_path, more_options=change)
    with pytest.raises(ConfigError) as caught:
        layouts.read(tmp_path)
    assert str(tmp_path / "options.json") in str(caught.value)
    assert says in str(caught.value)


def test_no_options(tmp_path):
    write_hdf5(tmp_path)
    (tmp_path / "options.json").unlink()
    with pytest.raises(NotAModel, match=r"no options\.json next to weights\.hdf5"):
        layouts.read(tmp_path)


@pytest.mark.parametrize("named", [False, True], ids=["the folder", "the weights file"])
def test_published_names(tmp_path, named):
    name = "elmo_2x4096_512_2048cnn_2xhighway"
    old = write_hdf5(tmp_path, options_name=f"{name}_options.json", weights_name=f"{name}_weights.hdf5")
    assert_arithmetic(tmp_path / f"{name}_weights.hdf5" if named else tmp_path, old)


def test_two_published_models_in_one_folder_each_use_their_own_options(tmp_path):
    made = {}
    for k, name in enumerate(("elmo_2x4096", "elmo_2x4096_5.5B", "elmo_2x1024")):
        sizes = {"layers": k + 1, "skip": k % 2 == 0}
        names = {"options_name": f"{name}_options.json", "weights_name": f"{name}_weights.hdf5"}
        made[name] = write_hdf5(tmp_path, seed=k, **names, **sizes)
    for name, old in made.items():
        assert_arithmetic(tmp_path / f"{name}_weights.hdf5", old)


def test_options_that_could_belong_to_either_are_refused(tmp_path):
    write_hdf5(tmp_path, options_name="a_options.json")
    write_hdf5(tmp_path, options_name="b_options.json")
    with pytest.raises(NotAModel, match=r"several options files|no options\.json"):
        layouts.read(tmp_path)


# Files


def test_with_two_weights_files_the_one_that_is_named_is_read(tmp_path):
    first = write_hdf5(tmp_path, seed=1, weights_name="first.hdf5")
    second = write_hdf5(tmp_path, seed=2, weights_name="second.h5")
    with pytest.raises(NotAModel, match=r"first\.hdf5, second\.h5 each contain the weights of a model\. Give the path"):
        layouts.read(tmp_path)
    assert_arithmetic(tmp_path / "first.hdf5", first)
    assert_arithmetic(tmp_path / "second.h5", second)


def test_a_weights_file_needs_no_ending(tmp_path):
    old = write_hdf5(tmp_path, weights_name="elmo_weights")
    assert_arithmetic(tmp_path, old)
    assert_arithmetic(tmp_path / "elmo_weights", old)


def test_a_weights_file_can_be_named_from_its_own_folder(tmp_path, monkeypatch):
    old = write_hdf5(tmp_path)
    monkeypatch.chdir(tmp_path)
    for path in (Path("weights.hdf5"), Path(), Path("./options.json"), Path(f"../{tmp_path.name}/weights.hdf5")):
        assert_arithmetic(path, old)


def test_a_file_of_vectors_is_not_weights(tmp_path):
    old = write_hdf5(tmp_path)
    old_models.write_arrays(tmp_path / "lm_embeddings_0.hdf5", {"0": np.ones((2, 3), np.float32)})
    assert_arithmetic(tmp_path, old)
    with pytest.raises(NotAModel, match="no recurrent weights"):
        layouts.read(tmp_path / "lm_embeddings_0.hdf5")


def test_a_damaged_file_beside_the_weights_is_noted(tmp_path):
    write_hdf5(tmp_path)
    (tmp_path / "other.hdf5").write_bytes(b"no HDF5 at all")
    notes = layouts.read(tmp_path).notes
    assert len(notes) == 1
    assert notes[0].startswith(f"not read: {tmp_path / 'other.hdf5'}: cannot be read as HDF5")


def test_a_softmax_of_its_own_file_belongs_to_the_model(tmp_path):
    old = old_models.bilmtf(seed=3, softmax=True)
    parts = {name: array for name, array in old.arrays.items() if name.startswith("softmax")}
    write_hdf5(tmp_path / "apart", replace(old, arrays={n: a for n, a in old.arrays.items() if n not in parts}))
    old_models.write_arrays(tmp_path / "apart" / "softmax.hdf5", parts)
    write_hdf5(tmp_path / "whole", old)
    assert layouts.read(tmp_path / "apart").has_softmax
    same_model(layouts.read(tmp_path / "apart"), layouts.read(tmp_path / "whole"))


def test_two_files_with_one_tensor_are_refused(tmp_path):
    old = write_hdf5(tmp_path, words=True)
    old_models.write_arrays(tmp_path / "cached.hdf5", {"embedding": old.arrays["embedding"]})
    with pytest.raises(WeightsError, match=r"cached\.hdf5 and .*weights\.hdf5 both contain `embedding`\. Remove one"):
        layouts.read(tmp_path)


def test_precomputed_word_vectors_are_not_needed_with_a_character_cnn(tmp_path):
    old = write_hdf5(tmp_path, softmax=True)
    old_models.write_arrays(tmp_path / "cached.hdf5", {"embedding": np.ones((len(WORDS), 4), np.float32)})
    assert "cached.hdf5: not needed; the character CNN computes the same vectors" in layouts.read(tmp_path).notes
    assert_arithmetic(tmp_path, old)


def test_precomputed_word_vectors_replace_missing_character_weights(tmp_path):
    old = old_models.bilmtf(seed=4, words=True)
    cnn = old_models.bilmtf().options["char_cnn"]
    write_hdf5(tmp_path, old, more_options={"char_cnn": cnn})
    assert any("words come from the table of cached vectors" in note for note in layouts.read(tmp_path).notes)
    assert_arithmetic(tmp_path, old)


def test_two_names_of_the_same_tensor_are_refused(tmp_path):
    write_hdf5(tmp_path)
    with h5py.File(tmp_path / "weights.hdf5", "a") as file:
        file["RNN_0/rnn/multi_rnn_cell/cell_0/lstm_cell/bias"] = np.zeros(24, np.float32)
    with pytest.raises(WeightsError, match="two names of the same tensor"):
        layouts.read(tmp_path)


# Every tensor is accounted for


def test_missing_and_misshapen_tensors_are_named_all_at_once(tmp_path):
    old = old_models.bilmtf()
    arrays = dict(old.arrays)
    del arrays["CNN/b_cnn_1"], arrays["RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/W_P_0"]
    arrays["CNN_proj/W_proj"] = np.zeros((7, 5), np.float32)
    arrays["RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell/B"] = np.zeros((24, 1), np.float32)
    write_hdf5(tmp_path, replace(old, arrays=arrays))
    with pytest.raises(WeightsError) as caught:
        layouts.read(tmp_path)
    assert str(caught.value).splitlines()[1:] == [
        "  CNN/b_cnn_1 is missing; its shape must be (3,)",
        "  RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/W_P_0 is missing; its shape must be (6, 4)",
        "  CNN_proj/W_proj has shape (7, 5); it must be (7, 4)",
        "  RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell/B has shape (24, 1); it must be (24,)",
    ]
    assert str(tmp_path / "weights.hdf5") in str(caught.value)


def test_every_tensor_is_needed(tmp_path):
    old = old_models.bilmtf()
    for name in old.arrays:
        arrays = {other: array for other, array in old.arrays.items() if other != name}
        write_hdf5(tmp_path, replace(old, arrays=arrays))
        with pytest.raises(WeightsError, match=f"{name} is missing; its shape must be "):
            layouts.read(tmp_path)


@pytest.mark.parametrize("shape", [(), (1,), (2, 2), (1, 1, 1, 1, 1)], ids=str)
def test_a_tensor_of_any_other_shape_is_refused(tmp_path, shape):
    old = old_models.bilmtf()
    for name in old.arrays:
        write_hdf5(tmp_path, replace(old, arrays=old.arrays | {name: np.zeros(shape, np.float32)}))
        with pytest.raises(WeightsError, match=name):
            layouts.read(tmp_path)


def test_tensors_that_nothing_uses_are_named(tmp_path):
    old = old_models.bilmtf()
    more = {"CNN_high_1/W_carry": np.zeros((7, 7), np.float32), "something/else": np.zeros(3, np.float32)}
    write_hdf5(tmp_path, replace(old, arrays=old.arrays | more))
    assert layouts.read(tmp_path).notes == ["not used: CNN_high_1/W_carry, something/else"]


def test_training_state_beside_the_weights_is_noted_as_unused(tmp_path):
    write_checkpoint(tmp_path, layers=1, directions=(0,))
    (note,) = [note for note in layouts.read(tmp_path).notes if note.startswith("not used: ")]
    for name in ("global_step", "train_perplexity", "char_embed/Adagrad", "rnn/lstm_cell/kernel/Adagrad"):
        assert name in note


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_numbers_are_refused(tmp_path, value):
    old = old_models.bilmtf()
    old.arrays["CNN_proj/b_proj"][2] = value
    write_hdf5(tmp_path, old)
    with pytest.raises(WeightsError, match="CNN_proj/b_proj: 1 of 4 values are not finite"):
        layouts.read(tmp_path)


def test_numbers_too_large_for_float32_are_refused(tmp_path):
    old = write_hdf5(tmp_path)
    old.arrays["CNN_proj/b_proj"] = np.full(4, 1e300)
    write_hdf5(tmp_path, old, dtype="<f8")
    with pytest.raises(WeightsError, match="CNN_proj/b_proj: 4 of 4 values are not finite"):
        layouts.read(tmp_path)


@pytest.mark.parametrize("dtype", ["int32", "bool", "complex64", "S3", h5py.string_dtype()], ids=str)
def test_tensors_of_other_types_are_refused(tmp_path, dtype):
    write_hdf5(tmp_path)
    with h5py.File(tmp_path / "weights.hdf5", "a") as file:
        del file["CNN_proj/b_proj"]
        file.create_dataset("CNN_proj/b_proj", shape=(4,), dtype=dtype)
    with pytest.raises(WeightsError, match=r"CNN_proj/b_proj contains .*; weights must be floating-point numbers"):
        layouts.read(tmp_path)


# Vocabulary


def test_blank_and_repeated_lines_keep_their_ids(tmp_path):
    write_hdf5(tmp_path, words=True)
    vocab = layouts.read(tmp_path).vocab
    assert vocab.words == WORDS
    assert vocab.ids(["cat", "sat", "", "nowhere"]) == [8, 7, 2, 2]


def test_lines_are_stripped_and_the_highest_term_is_skipped(tmp_path):
    old = write_hdf5(tmp_path, words=True)
    lines = ["!!!MAXTERMID 793471", *WORDS[:3], " the\t", *WORDS[4:6], "  ", *WORDS[7:], "!!!MAXTERMID"]
    (tmp_path / "vocab.txt").write_bytes("\r\n".join([*lines, ""]).encode())
    assert layouts.read(tmp_path).vocab.words == WORDS
    assert_arithmetic(tmp_path, old)


@pytest.mark.parametrize("name", ["vocab.txt.gz", "vocab-2016-09-10.txt", "vocab_test.txt.gz"])
def test_the_vocabulary_under_its_other_names(tmp_path, name):
    write_hdf5(tmp_path, words=True)
    plain = (tmp_path / "vocab.txt").read_bytes()
    (tmp_path / "vocab.txt").unlink()
    (tmp_path / name).write_bytes(gzip.compress(plain) if name.endswith(".gz") else plain)
    assert layouts.read(tmp_path).vocab.words == WORDS


def test_vocab_txt_is_preferred_to_files_with_similar_names(tmp_path):
    write_hdf5(tmp_path, words=True)
    (tmp_path / "vocab-other.txt").write_text("x\n")
    assert layouts.read(tmp_path).vocab.words == WORDS


@pytest.mark.parametrize("mark", MARKS)
def test_a_vocabulary_without_a_mark_is_refused_for_words_and_noted_for_characters(tmp_path, mark):
    lines = [word if word != mark else "other" for word in WORDS]
    for words in (True, False):
        folder = tmp_path / str(words)
        write_hdf5(folder, words=words)
        (folder / "vocab.txt").write_text("\n".join(lines) + "\n")
    with pytest.raises(VocabError, match=rf"vocab\.txt: the vocabulary of 10 words lacks {mark}"):
        layouts.read(tmp_path / "True")
    bundle = layouts.read(tmp_path / "False")
    assert bundle.vocab is None
    assert bundle.notes[0].startswith(f"vocabulary not used: {tmp_path / 'False' / 'vocab.txt'}")


@pytest.mark.parametrize("bad", [b"<S>\n\xff\n", gzip.compress(b"<S>\n" * 99)[:-9]], ids=["not UTF-8", "truncated"])
def test_a_character_model_works_without_a_readable_vocabulary(tmp_path, bad):
    old = write_hdf5(tmp_path)
    (tmp_path / "vocab.txt").write_bytes(bad)
    assert layouts.read(tmp_path).notes[0].startswith("vocabulary not used: ")
    assert_arithmetic(tmp_path, old)
    write_hdf5(tmp_path, words=True)
    (tmp_path / "vocab.txt").write_bytes(bad)
    with pytest.raises((TextError, DamagedFile), match=r"vocab\.txt"):
        layouts.read(tmp_path)


@pytest.mark.parametrize("write", [write_hdf5, write_checkpoint])
@pytest.mark.parametrize("sizes", [{"words": True}, {"softmax": True}], ids=["a table", "a softmax"])
@pytest.mark.parametrize("change", [-1, 1])
def test_a_vocabulary_of_another_length_is_refused(tmp_path, write, sizes, change):
    write(tmp_path, **sizes)
    lines = [*WORDS, "more"][: len(WORDS) + change]
    (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in lines))
    says = rf"vocab\.txt: has {10 + change} entries, but the weights have 10 rows"
    with pytest.raises(VocabError, match=says):
        layouts.read(tmp_path)


def test_a_table_without_a_vocabulary_is_refused(tmp_path):
    write_hdf5(tmp_path, words=True)
    (tmp_path / "vocab.txt").unlink()
    with pytest.raises(VocabError, match=r"vocab\.txt: is missing; it must name the 10 rows"):
        layouts.read(tmp_path)


def test_a_softmax_without_a_vocabulary_is_not_used(tmp_path):
    write_checkpoint(tmp_path)
    (tmp_path / "vocab.txt").unlink()
    bundle = layouts.read(tmp_path)
    assert not bundle.has_softmax
    assert "softmax of 10 words not used: there is no usable vocab.txt for its words" in bundle.notes
    with pytest.raises(NoSoftmax):
        bilmo.load(tmp_path).log_probs([["cat"]])


def test_a_table_without_a_dataset_is_refused(tmp_path):
    write_hdf5(tmp_path, words=True)
    with h5py.File(tmp_path / "weights.hdf5", "a") as file:
        del file["embedding"]
    with pytest.raises(WeightsError, match="no HDF5 file next to it has the dataset `embedding`"):
        layouts.read(tmp_path)


# Softmax


def expected_log_probs(old: old_models.Old, sentence: list[str]) -> np.ndarray:
    weight, bias = (old.arrays[f"softmax/{part}"].astype(np.float64) for part in "Wb")
    ids = {word: id for id, word in enumerate(WORDS) if word}
    said = np.array([ids.get(word, 2) for word in ("<S>", *sentence, "</S>")])
    layers, _ = old_models.bilmtf_layers(old, sentence, boundaries=True)
    rows = []
    for direction, top in zip(old.directions, np.split(layers[-1], len(old.directions), axis=1), strict=True):
        outputs, words = (top[1:], said[:-1]) if direction else (top[:-1], said[1:])
        logits = outputs @ weight.T + bias
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        rows.append(logs[np.arange(len(words)), words])
    return np.array(rows)


@pytest.mark.parametrize("variant", ["plain", "words", "one layer", "forward only"])
def test_log_probabilities_are_those_of_the_old_rules(tmp_path, variant):
    old = write_checkpoint(tmp_path, seed=6, **(VARIANTS | ONE_WAY)[variant])
    sentences = [["The", "cat", "sat"], [], ["nowhere", "the"]]
    for sentence, found in zip(sentences, bilmo.load(tmp_path, start="zero").log_probs(sentences), strict=True):
        assert found.shape == (len(old.directions), len(sentence) + 1)
        assert np.abs(found - expected_log_probs(old, sentence)).max() < 1e-4


def test_a_table_shared_with_the_softmax_is_read_as_both(tmp_path):
    old = old_models.bilmtf(words=True, softmax=True)
    arrays = {name: array for name, array in old.arrays.items() if name != "softmax/W"}
    write_checkpoint(tmp_path, replace(old, arrays=arrays))
    weights = layouts.read(tmp_path).weights
    assert torch.equal(weights["softmax.weight"], weights["words.table.weight"])
    layouts.write(layouts.read(tmp_path), tmp_path / "new", "bilmo")
    same_model(layouts.read(tmp_path / "new"), layouts.read(tmp_path))


# Round trips


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_round_trip_through_our_folder_keeps_every_bit(tmp_path, variant):
    old = write_hdf5(tmp_path / "old", seed=10, **VARIANTS[variant])
    bundle = layouts.read(tmp_path / "old")
    assert layouts.write(bundle, tmp_path / "ours", "bilmo") == []
    ours = layouts.read(tmp_path / "ours")
    same_model(ours, bundle)
    assert layouts.write(ours, tmp_path / "again", "allennlp") == []
    written = old_models.read_arrays(tmp_path / "again" / "weights.hdf5")
    assert {n: (a.dtype, a.shape, a.tobytes()) for n, a in written.items()} == {
        n: (a.dtype, a.shape, a.tobytes()) for n, a in old.arrays.items()
    }
    same_model(layouts.read(tmp_path / "again"), bundle)
    if old.vocab:
        assert (tmp_path / "again" / "vocab.txt").read_bytes() == (tmp_path / "old" / "vocab.txt").read_bytes()


def test_signed_zeros_and_the_smallest_numbers_survive(tmp_path):
    old = old_models.bilmtf()
    for array in old.arrays.values():
        array.flat[0], array.flat[1] = -0.0, 1e-45
    write_hdf5(tmp_path / "old", old)
    layouts.write(layouts.read(tmp_path / "old"), tmp_path / "ours", "bilmo")
    layouts.write(layouts.read(tmp_path / "ours"), tmp_path / "again", "allennlp")
    for name, array in old_models.read_arrays(tmp_path / "again" / "weights.hdf5").items():
        assert array.tobytes() == old.arrays[name].tobytes()


def test_the_options_that_are_written_are_those_that_were_read(tmp_path):
    old = write_hdf5(tmp_path / "old", skip=False, activation="tanh", longest=20, cell_clip=2.5, proj_clip=None)
    bilmtf.write(layouts.read(tmp_path / "old"), tmp_path / "new")
    assert json.loads((tmp_path / "new" / "options.json").read_text()) == old.options


def test_the_softmax_is_kept_in_our_folder_and_named_as_dropped_for_the_other(tmp_path):
    write_checkpoint(tmp_path / "old")
    bundle = layouts.read(tmp_path / "old")
    assert layouts.write(bundle, tmp_path / "ours", "bilmo") == []
    same_model(layouts.read(tmp_path / "ours"), bundle)
    assert layouts.write(settled(bundle), tmp_path / "other", "allennlp") == ["the softmax", "the settled start"]
    other = layouts.read(tmp_path / "other")
    assert not other.has_softmax
    assert bits(other) == {name: value for name, value in bits(bundle).items() if not name.startswith("softmax")}


CHARS, TABLE = CharsConfig(width=3, filters=((1, 4),), highways=0), TableConfig(rows=10, width=4)
PLAIN = BiLMConfig(words=WordsConfig(chars=CHARS), cell=CellConfig(cells=6), width=4)
CANNOT = {
    "its cells are of kind gru, not lstm": replace(
        PLAIN, cell=CellConfig(kind="gru", cells=4, project=False, cell_clip=None, projection_clip=None)
    ),
    "its forget bias is 0.5, not 1": replace(PLAIN, cell=CellConfig(cells=6, forget_bias=0.5)),
    "it has one direction (backward)": replace(PLAIN, directions=("backward",)),
    "its characters are Unicode, not bytes": replace(
        PLAIN, words=WordsConfig(chars=replace(CHARS, kind="unicode", rows=20))
    ),
    "its words have no maximum length": replace(PLAIN, words=WordsConfig(chars=replace(CHARS, max_characters=None))),
    "it joins characters and a word table": replace(PLAIN, words=WordsConfig(chars=CHARS, table=TABLE)),
    "its highway layers follow the projection": replace(PLAIN, words=WordsConfig(chars=CHARS, highways=1)),
    "it uses pretrained word vectors": replace(
        PLAIN, words=WordsConfig(table=replace(TABLE, given=True), project=False)
    ),
    "it changes words to lower case": replace(
        PLAIN, words=WordsConfig(table=replace(TABLE, lower=True), project=False)
    ),
    "its word table is projected": replace(PLAIN, words=WordsConfig(table=TABLE)),
}


@pytest.mark.parametrize("reason", CANNOT)
def test_what_the_layout_cannot_hold_is_refused(tmp_path, reason):
    bundle = Bundle(config=CANNOT[reason], weights={}, layout="made here")
    with pytest.raises(CannotConvert) as caught:
        bilmtf.write(bundle, tmp_path / "new")
    assert f"cannot hold this model: {reason}. Use bilmo's own folder." in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_all_reasons_are_named_at_once(tmp_path):
    config = replace(PLAIN, directions=("forward",), cell=CellConfig(cells=6, forget_bias=0))
    with pytest.raises(CannotConvert, match=r"its forget bias is 0, not 1; it has one direction \(forward\)\."):
        bilmtf.write(Bundle(config=config, weights={}, layout="made here"), tmp_path / "new")


# Damage


def survives(path: Path) -> bool:
    """Whether it is read; if not, it must be refused with one of our errors."""
    try:
        bundle = layouts.read(path)
    except BilmoError as error:
        assert str(path) in str(error) or str(path.parent) in str(error)
        return False
    bundle.network()
    return True


def test_every_cut_of_the_weights_is_refused(tmp_path):
    write_hdf5(tmp_path)
    path = tmp_path / "weights.hdf5"
    for bad in cuts(path.read_bytes(), 24):
        path.write_bytes(bad)
        assert not survives(path)
        assert not survives(tmp_path)


def test_flips_of_the_weights_are_read_or_refused(tmp_path):
    write_hdf5(tmp_path)
    path = tmp_path / "weights.hdf5"
    read = 0
    for bad in flips(path.read_bytes(), 100, seed=11):
        path.write_bytes(bad)
        read += survives(tmp_path)
    assert 0 < read < 100


def test_cuts_and_flips_of_the_options_are_read_or_refused(tmp_path):
    write_hdf5(tmp_path)
    path = tmp_path / "options.json"
    good = path.read_bytes()
    for bad in cuts(good, 24):
        path.write_bytes(bad)
        assert not survives(tmp_path)
    for bad in flips(good, 80, seed=12):
        path.write_bytes(bad)
        survives(tmp_path)


@pytest.mark.parametrize("part", ["index", "data-00000-of-00001"])
def test_a_damaged_checkpoint_beside_its_options_is_refused(tmp_path, part):
    write_checkpoint(tmp_path)
    path = tmp_path / f"model.ckpt-935588.{part}"
    good = path.read_bytes()
    read = 0  # damage to what only training needs is not noticed
    for bad in (*cuts(good, 6), *flips(good, 30)):
        path.write_bytes(bad)
        read += survives(tmp_path)
    assert read < 20
    path.unlink()
    assert not survives(tmp_path)


def test_a_missing_checkpoint_is_reported(tmp_path):
    for path in (tmp_path / "nowhere" / "model.ckpt-5.index", tmp_path / "model.ckpt-5.index", tmp_path / "model.ckpt"):
        with pytest.raises(NotAModel, match=r"there is no such file"):
            layouts.read(path)


@pytest.mark.parametrize("deep", [b"[" * 100_000, b'{"lstm": ' * 100_000, b"9" * 100_000, b"\xff\xfe", b"null", b"[]"])
def test_strange_json_is_refused(tmp_path, deep):
    write_hdf5(tmp_path)
    (tmp_path / "options.json").write_bytes(deep)
    assert not survives(tmp_path)


def test_an_unreadable_file_is_reported_without_a_traceback(tmp_path):
    write_hdf5(tmp_path)
    (tmp_path / "options.json").chmod(0)
    if os.access(tmp_path / "options.json", os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(ConfigError, match="cannot be read"):
        layouts.read(tmp_path)

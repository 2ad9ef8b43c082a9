"""Vectors on disk, laid out as `allennlp elmo` wrote them."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from bilmo.errors import OutputError
from bilmo.store.embeddings import write


def sentences(*texts: str):
    return [(text, np.full((3, len(text.split()), 4), k, np.float32)) for k, text in enumerate(texts)]


def test_a_dataset_for_each_sentence_and_a_text_that_says_which_is_which(tmp_path):
    assert write(tmp_path / "out.h5", sentences("The cat", "a / b . c", "naïve 漢字")) == 3
    with h5py.File(tmp_path / "out.h5") as file:
        assert set(file) == {"0", "1", "2", "sentence_to_index"}
        assert file["1"].shape == (3, 5, 4)
        assert file["1"].dtype == np.float32
        assert (file["2"][...] == 2).all()
        known = file["sentence_to_index"]
        assert known.shape == (1,)
        assert h5py.check_string_dtype(known.dtype).length is None
        assert json.loads(known[0]) == {"The cat": "0", "a / b . c": "1", "naïve 漢字": "2"}


def test_of_equal_sentences_each_is_kept_and_the_last_is_named(tmp_path):
    assert write(tmp_path / "out.h5", sentences("a", "b", "a", "", "")) == 5
    with h5py.File(tmp_path / "out.h5") as file:
        assert set(file) == {"0", "1", "2", "3", "4", "sentence_to_index"}
        assert json.loads(file["sentence_to_index"][0]) == {"a": "2", "b": "1", "": "4"}
        assert file["3"].shape == (3, 0, 4)


def test_no_sentences(tmp_path):
    assert write(tmp_path / "out.h5", []) == 0
    with h5py.File(tmp_path / "out.h5") as file:
        assert json.loads(file["sentence_to_index"][0]) == {}


def test_characters_that_end_a_text_elsewhere(tmp_path):
    write(tmp_path / "out.h5", [("a\0b\u2028c\ud800", np.zeros((1, 1), np.float32))])
    with h5py.File(tmp_path / "out.h5") as file:
        assert json.loads(file["sentence_to_index"][0]) == {"a\0b\u2028c\ud800": "0"}


def test_a_file_that_exists_is_replaced_when_all_went_well_and_not_before(tmp_path):
    path = tmp_path / "out.h5"
    path.write_text("old")

    def broken():
        yield from sentences("a", "b")
        assert path.read_text() == "old"
        raise ValueError("the third sentence")

    with pytest.raises(ValueError, match="the third sentence"):
        write(path, broken())
    assert path.read_text() == "old"
    write(path, sentences("a"))
    with h5py.File(path) as file:
        assert "0" in file
    assert [file.name for file in tmp_path.iterdir()] == ["out.h5"]


@pytest.mark.parametrize("target", ["folder", "nowhere/out.h5"])
def test_a_place_that_cannot_be_written_is_named(tmp_path, target):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match=target):
        write(tmp_path / target, sentences("a"))
    assert [path.name for path in Path(tmp_path).iterdir()] == ["folder"]

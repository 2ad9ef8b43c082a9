"""Vectors on disk: every format gives back what was written, and appears only when it is whole."""

from __future__ import annotations

import gzip
import json
import lzma
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bilmo.embed.output import hdf5 as as_hdf5
from bilmo.embed.output import write as embeddings
from bilmo.embed.output.table import EmbeddedText, Table, VectorSpec
from bilmo.embed.output.write import check, size, write
from bilmo.errors import ConfigError, MissingExtra, OutputError

import strategies

SPECS = [
    VectorSpec(width=5, split_by_bilmo=True),
    VectorSpec(width=5, layers=3),
    VectorSpec(width=5, pooled=True, dtype="float16", split_by_bilmo=True),
    VectorSpec(width=5, layers=3, pooled=True),
    VectorSpec(width=5, layers=2, dtype="float16"),
]
SENTENCES = [["The", "cat"], [], ["a\0b", "\ud800", "naïve", "漢字"], ["The", "cat"], ["x" * 100_000], []]


def table(spec: VectorSpec, sentences: list[list[str]] = SENTENCES, seed: int = 0) -> Table:
    random = np.random.default_rng(seed)
    rows = [EmbeddedText(" ".join(s), s, random.normal(size=spec.shape(len(s))).astype(spec.dtype)) for s in sentences]
    return Table(spec, lambda: iter(rows), len(rows), sum(map(len, sentences)))


def read_hdf5(path: Path, spec: VectorSpec, count: int):
    with h5py.File(path) as file:
        tokens = [json.loads(text) for text in file["tokens"]] if spec.split_by_bilmo else None
        split = ["tokens", "offsets"] if spec.split_by_bilmo else []
        assert set(file) == {*map(str, range(count)), "sentence_to_index", *split}
        return tokens, [file[str(k)][...] for k in range(count)]


def cut(vectors: np.ndarray, spec: VectorSpec, lengths: list[int]) -> list[np.ndarray]:
    """One array of all, cut into sentences."""
    if spec.pooled:
        return list(np.moveaxis(vectors, -2, 0))
    return np.split(vectors, np.cumsum(lengths)[:-1], axis=-2) if lengths else []


def read_npy(path: Path, spec: VectorSpec, count: int):
    tokens = [json.loads(line)["tokens"] for line in path.with_suffix(".tokens.jsonl").read_bytes().splitlines()]
    return tokens, cut(np.load(path), spec, list(map(len, tokens)))


def read_npz(path: Path, spec: VectorSpec, count: int):
    with np.load(path) as file:
        tokens = json.loads(file["tokens.json"])
        if not spec.pooled:
            assert np.array_equal(np.diff(file["offsets"]), [len(sentence) for sentence in tokens])
            assert file["offsets"][0] == 0
        return tokens, cut(file["vectors"], spec, list(map(len, tokens)))


def read_jsonl(path: Path, spec: VectorSpec, count: int):
    raw = path.read_bytes()
    if path.suffix != ".jsonl":
        raw = {".gz": gzip, ".xz": lzma}[path.suffix].decompress(raw)
    rows = [json.loads(line) for line in raw.splitlines()]
    name = "vector" if spec.pooled and spec.layers is None else "vectors"
    shapes = [spec.shape(len(row["tokens"])) for row in rows]
    vectors = [np.array(row[name], spec.dtype).reshape(shape) for row, shape in zip(rows, shapes, strict=True)]
    return [row["tokens"] for row in rows], vectors


def read_parquet(path: Path, spec: VectorSpec, count: int):
    parquet = pytest.importorskip("pyarrow.parquet")
    found = parquet.read_table(path)
    names = ["vector"] if spec.layers is None else [f"layer_{k}" for k in range(spec.layers)]
    columns = [found[name].combine_chunks().flatten().to_numpy(zero_copy_only=False) for name in names]
    stacked = np.stack([column.reshape(-1, spec.width) for column in columns])
    values = stacked if spec.layers else stacked[0]
    if spec.pooled:
        assert found["sentence"].to_pylist() == list(range(count))
        return found["tokens"].to_pylist(), cut(values, spec, [])
    tokens: list[list[str]] = [[] for _ in range(count)]
    for sentence, position, token in zip(
        *(found[n].to_pylist() for n in ("sentence", "position", "token")), strict=True
    ):
        assert position == len(tokens[sentence])
        tokens[sentence].append(token)
    return tokens, cut(values, spec, list(map(len, tokens)))


READERS = {
    ".h5": read_hdf5,
    ".hdf5": read_hdf5,
    ".npy": read_npy,
    ".npz": read_npz,
    ".jsonl": read_jsonl,
    ".jsonl.gz": read_jsonl,
    ".jsonl.xz": read_jsonl,
    ".parquet": read_parquet,
}


def assert_same(path: Path, given: Table, ending: str) -> None:
    rows = list(given.read())
    tokens, vectors = READERS[ending](path, given.spec, len(rows))
    assert [v.shape for v in vectors] == [row.vectors.shape for row in rows]
    for found, row in zip(vectors, rows, strict=True):
        assert found.dtype == given.spec.dtype
        assert np.array_equal(found, row.vectors)
    if tokens is not None:
        whole = [[t.replace("\ud800", r"\ud800") for t in row.tokens] for row in rows]
        assert tokens == (whole if ending == ".parquet" else [row.tokens for row in rows])


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("ending", READERS)
def test_every_format_gives_back_what_was_written(tmp_path, ending, spec, monkeypatch):
    monkeypatch.setattr("bilmo.embed.output.parquet.GROUP", 100)
    monkeypatch.setattr("bilmo.embed.output.hdf5.SENTENCES_AT_ONCE", 4)
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    given = table(spec)
    assert write(tmp_path / f"out{ending}", given) == []
    assert_same(tmp_path / f"out{ending}", given, ending)
    beside = ["out.tokens.jsonl"] if ending == ".npy" else []
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"out{ending}", *beside]


@pytest.mark.parametrize("ending", [".h5", ".npy", ".npz", ".jsonl"])
@settings(max_examples=30)
@given(st.lists(strategies.sentences(), max_size=5), st.sampled_from(SPECS), strategies.seeds())
def test_any_tokens_come_back(tmp_path_factory, ending, sentences, spec, seed):
    path = tmp_path_factory.getbasetemp() / f"any{ending}"
    given = table(spec, sentences, seed)
    write(path, given)
    assert_same(path, given, ending)


@pytest.mark.parametrize("ending", READERS)
@pytest.mark.parametrize("sentences", [[], [[]], [[], []]], ids=len)
def test_no_sentences_and_sentences_without_tokens(tmp_path, ending, sentences):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    given = table(SPECS[1], sentences)
    write(tmp_path / f"out{ending}", given)
    if sentences or ending != ".parquet":
        assert_same(tmp_path / f"out{ending}", given, ending)


@pytest.mark.parametrize("ending", [".h5", ".npz"])
def test_compression_takes_less_space_and_changes_nothing(tmp_path, ending):
    spec = replace(SPECS[0], width=512)
    rows = [EmbeddedText("a b", ["a", "b"], np.ones((2, 512), np.float32))] * 20
    given = Table(spec, lambda: iter(rows), 20, 40)
    for compress in (False, True):
        write(tmp_path / f"{compress}{ending}", given, compress=compress)
        assert_same(tmp_path / f"{compress}{ending}", given, ending)
    plain, packed = ((tmp_path / f"{compress}{ending}").stat().st_size for compress in (False, True))
    assert packed < plain


# HDF5 as AllenNLP has it


def test_sentence_to_index_has_the_last_of_equal_sentences(tmp_path):
    write(tmp_path / "out.h5", table(VectorSpec(width=4, layers=3), [["a"], ["b", "/", "."], ["a"], [], ["é"], []]))
    with h5py.File(tmp_path / "out.h5") as file:
        known = file["sentence_to_index"]
        assert known.shape == (1,)
        assert h5py.check_string_dtype(known.dtype).length is None
        assert json.loads(known[0]) == {"b / .": "1", "a": "2", "é": "4", "": "5"}
        assert "tokens" not in file


def test_characters_that_end_a_string_in_other_languages(tmp_path):
    write(tmp_path / "out.h5", table(SPECS[1], [["a\0b\u2028c\ud800"]]))
    with h5py.File(tmp_path / "out.h5") as file:
        assert json.loads(file["sentence_to_index"][0]) == {"a\0b\u2028c\ud800": "0"}


def test_above_a_million_sentences_sentence_to_index_is_left_out_with_a_note(tmp_path, monkeypatch):
    monkeypatch.setattr(as_hdf5, "MOST_NAMED", 5)
    (note,) = write(tmp_path / "out.h5", table(SPECS[1]))
    assert note == "sentence_to_index is left out: the file has 6 sentences, the limit is 5"
    with h5py.File(tmp_path / "out.h5") as file:
        assert set(file) == set("012345")
    assert write(tmp_path / "out.h5", table(SPECS[1], SENTENCES[:5])) == []


# What is refused


@pytest.mark.parametrize("ending", READERS)
def test_a_file_is_replaced_only_on_success(tmp_path, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"out{ending}"
    path.write_text("old")
    given = table(SPECS[1])

    def broken():
        yield from list(given.read())[:2]
        assert path.read_text() == "old"
        raise ValueError("the third sentence")

    with pytest.raises(ValueError, match="the third sentence"):
        write(path, replace(given, read=broken))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "old"
    write(path, given)
    assert_same(path, given, ending)


@pytest.mark.parametrize("name", ["out", "out.txt", "out.json", "h5", "out.h5.gz"])
def test_an_unknown_ending_is_refused(tmp_path, name):
    with pytest.raises(OutputError, match=r"selects the format; accepted: \.h5, \.hdf5, \.parquet"):
        check(tmp_path / name, compress=False)


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(OutputError, match="this is a folder"):
        (tmp_path / "out.h5").mkdir()
        check(tmp_path / "out.h5", compress=False)


def test_compress_is_refused_for_formats_with_their_own_compression(tmp_path):
    for ending, says in {".parquet": "always compressed", ".npy": "Use .npz", ".jsonl": "use .jsonl.gz"}.items():
        with pytest.raises(ConfigError, match=says):
            check(tmp_path / f"out{ending}", compress=True)


def test_a_missing_package_is_named_before_anything_is_computed(tmp_path, monkeypatch):
    for name in ("pyarrow", "backports.zstd", "compression.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"Writing Parquet needs the package pyarrow.*pip install 'bilmo\[data\]'"):
        check(tmp_path / "out.parquet", compress=False)
    with pytest.raises(MissingExtra, match=r"bilmo\[zst\]"):
        check(tmp_path / "out.jsonl.zst", compress=False)


@pytest.mark.parametrize("ending", [".npy", ".jsonl", ".h5"])
@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_the_estimated_size_is_about_right(tmp_path, ending, spec):
    given = table(replace(spec, width=300), [["a"] * 30] * 40)
    path = tmp_path / f"out{ending}"
    write(path, given)
    expected = size(path, given.spec, sentences=given.sentences, tokens=given.tokens)
    overhead = 40 * 1200 if ending == ".h5" else 4000
    assert 0.7 * expected < path.stat().st_size < 1.2 * expected + overhead


def test_every_ending_has_a_reader_here():
    assert {*READERS, ".jsonl.zst"} == set(embeddings.ENDINGS)


ABOUT = {"bilmo": "1.2", "model": "en"}
TEXTS = ["  The cat  sat.", "", "你好，world"]
TOKENS = [["The", "cat", "sat", "."], [], ["你好", "，", "world"]]
PLACES = [[[2, 5], [6, 9], [11, 14], [14, 15]], [], [[0, 2], [2, 3], [3, 8]]]


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("ending", [".h5", ".npy", ".npz", ".jsonl", ".parquet"])
def test_every_format_says_where_tokens_stand_and_how_the_file_was_made(tmp_path, ending, pooled):
    spec = VectorSpec(width=2, pooled=pooled, split_by_bilmo=True, about=ABOUT)
    rows = [
        EmbeddedText(text, t, np.ones(spec.shape(len(t)), np.float32)) for text, t in zip(TEXTS, TOKENS, strict=True)
    ]
    path = tmp_path / f"v{ending}"
    write(path, Table(spec, lambda: iter(rows), len(rows), sum(map(len, TOKENS))))
    about = ABOUT
    if ending == ".h5":
        with h5py.File(path) as file:
            places, about = [json.loads(text) for text in file["offsets"]], dict(file.attrs)
            assert json.loads(file["sentence_to_index"][0]) == {"The cat  sat.": "0", "": "1", "你好，world": "2"}
    elif ending == ".npy":  # numpy's format has no place for metadata
        places = [json.loads(row)["offsets"] for row in path.with_suffix(".tokens.jsonl").read_bytes().splitlines()]
    elif ending == ".npz":
        with np.load(path) as file:
            ends = np.cumsum([len(tokens) for tokens in TOKENS])[:-1]
            places, about = (
                [part.tolist() for part in np.split(file["characters"], ends)],
                json.loads(file["about.json"]),
            )
    elif ending == ".jsonl":
        found = [json.loads(row) for row in path.read_text("utf-8").splitlines()]
        places, about = [row["offsets"] for row in found], found[0]["about"]
        assert all("about" not in row for row in found[1:])
    else:
        table = pytest.importorskip("pyarrow.parquet").read_table(path)
        about = {name.decode(): value.decode() for name, value in table.schema.metadata.items()}
        if pooled:
            places = table["offsets"].to_pylist()
        else:
            places = [[] for _ in TEXTS]
            for sentence, *place in zip(
                *(table[name].to_pylist() for name in ("sentence", "begin", "end")), strict=True
            ):
                places[sentence].append(place)
    assert places == PLACES and about == ABOUT

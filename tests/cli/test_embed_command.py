"""`bilmo embed` as a user types it: every input and output, on a terminal and through a pipe."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest

import bilmo
from bilmo.embed.embedder import Embedder
from bilmo.embed.loaded import settled
from bilmo.formats import open as layouts
from bilmo.store import model_folder
from program import Result, program

from old_models import write_hdf5

TEXT = "He sat on the bank. It wasn't far!\n\nShe sat, too.\n"
TOKENS = ["He sat on the bank . It was n't far !".split(), [], "She sat , too .".split()]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("embed")
    write_hdf5(folder / "old", seed=1)
    layouts.write(settled(layouts.read(folder / "old")), folder / "model", "bilmo")
    return folder / "model"


@pytest.fixture(scope="module")
def elmo(model: Path) -> Embedder:
    return bilmo.load(model)


@pytest.fixture
def here(tmp_path: Path, monkeypatch) -> Path:
    """A folder of its own to work in, with raw text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw.txt").write_text(TEXT)
    return tmp_path


@pytest.fixture
def bank(here, model) -> Callable[..., Result]:
    """`bilmo embed MODEL ...` in this process."""
    return partial(program, here, "embed", model)


def close(a: np.ndarray, b: np.ndarray) -> bool:
    return np.shape(a) == np.shape(b) and bool(np.abs(np.asarray(a) - b).max(initial=0) < 1e-5)


# Text on the command line


def test_text_on_the_command_line_gives_json_in_a_pipe(bank, elmo):
    result = bank("He sat on the bank.", "他坐在河边。")
    assert (result.code, result.err) == (0, "")
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert [row["tokens"] for row in rows] == [["He", "sat", "on", "the", "bank", "."], ["他", "坐在", "河边", "。"]]
    for row, expected in zip(rows, elmo.embed(["He sat on the bank.", "他坐在河边。"]), strict=True):
        assert close(row["vectors"], expected.vectors)


def test_on_a_terminal_vectors_are_shown_as_a_table(bank, elmo, monkeypatch):
    monkeypatch.setattr("bilmo.cli.embed._is_terminal", lambda: True)
    for more, rows in {(): 3, ("--mix", "all"): 9, ("--pool", "max"): 1}.items():
        result = bank("Hello, world", *more)
        lines = [line for line in result.out.splitlines() if line.strip()]
        assert (result.code, len(lines)) == (0, rows)
        assert lines[0].startswith("Hello")
        assert f"{elmo.embed('Hello, world').vectors[0, 0]:.4f}" in lines[0] or more


def test_odd_characters_and_blank_lines_pass_through_a_pipe(bank, elmo):
    text = '{"x": "a\\u0000b c\\ud800"}\n\n{"x": "d"}'
    result = bank("-", "--field", "x", "--pool", "mean", "--dtype", "float16", "--lang", "spaces", stdin=text)
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert [row["tokens"] for row in rows] == [["a\0b", "c\ud800"], [], ["d"]]
    expected = elmo.embed([row["tokens"] for row in rows], pool="mean", dtype="float16")
    assert all(np.array_equal(np.array(row["vector"], np.float16), e) for row, e in zip(rows, expected, strict=True))


def test_a_single_word_could_be_a_file_so_the_error_says_how_to_embed_it(bank):
    result = bank("bank")
    assert (result.code, result.out) == (1, "")
    assert result.err == "bilmo: bank: there is no such file. To embed the word itself, put a space after it: 'bank '\n"
    assert json.loads(bank("bank ").out)["tokens"] == ["bank"]


# Files in, files out


def test_raw_text_keeps_its_lines_and_tokens_are_written_with_the_vectors(bank, here, elmo):
    result = bank("raw.txt", "-o", "v.h5")
    assert (result.code, result.out, result.err) == (0, "v.h5: 3 sentences, 16 tokens, lang: auto\n", "")
    with h5py.File("v.h5") as file:
        assert set(file) == {"0", "1", "2", "sentence_to_index", "tokens", "offsets"}
        assert [json.loads(text) for text in file["tokens"]] == TOKENS
        assert json.loads(file["sentence_to_index"][0]) == {line: str(k) for k, line in enumerate(TEXT.split("\n")[:3])}
        for k, expected in enumerate(elmo.embed(TEXT.split("\n")[:3], mix="all")):
            assert close(file[str(k)][...], expected.vectors)


@pytest.mark.parametrize("ending", [".npy", ".npz", ".jsonl", ".jsonl.gz", ".parquet"])
def test_every_format_has_the_mean_of_all_layers_and_the_tokens(bank, here, elmo, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    assert bank("raw.txt", "-o", f"v{ending}").code == 0
    expected = np.concatenate([found.vectors for found in elmo.embed(TEXT.split("\n")[:3])])
    if ending == ".npy":
        rows = [json.loads(line) for line in Path("v.tokens.jsonl").read_text().splitlines()]
        tokens, vectors = [row["tokens"] for row in rows], np.load("v.npy")
    elif ending == ".npz":
        with np.load("v.npz") as file:
            tokens, vectors = json.loads(file["tokens.json"]), file["vectors"]
    elif ending == ".parquet":
        import pyarrow.parquet

        table = pyarrow.parquet.read_table("v.parquet")
        assert table["token"].to_pylist() == [token for sentence in TOKENS for token in sentence]
        tokens, vectors = TOKENS, np.array(table["vector"].to_pylist())
    else:
        raw = Path(f"v{ending}").read_bytes()
        rows = [json.loads(line) for line in (gzip.decompress(raw) if ending == ".jsonl.gz" else raw).splitlines()]
        tokens = [row["tokens"] for row in rows]
        vectors = np.concatenate([np.reshape(row["vectors"], (-1, 8)) for row in rows])
    assert list(tokens) == TOKENS
    assert close(vectors, expected)


def test_one_vector_per_sentence(bank, here, elmo):
    assert bank("raw.txt", "-o", "v.npy", "--pool", "max", "--mix", "0,1", "--dtype", "float16").code == 0
    found = np.load("v.npy")
    assert found.dtype == np.float16
    assert found.shape == (3, 8)
    assert not found[1].any()
    expected = elmo.embed(TEXT.split("\n")[0], pool="max", mix=(0, 1), dtype="float16")
    assert np.array_equal(found[0], expected)


def test_several_inputs_of_every_kind_at_once(bank, here, elmo):
    (here / "folder").mkdir()
    (here / "folder" / "a.gz").write_bytes(gzip.compress(b"one two"))
    for option in ([], ["--overwrite"]):  # the second time, the output is replaced
        result = bank("folder", "three four", "-", "-o", "v.npz", "--lang", "spaces", *option, stdin=b"five\n")
        assert result.out == "v.npz: 3 sentences, 5 tokens, lang: spaces\n"
        with np.load("v.npz") as file:
            assert json.loads(file["tokens.json"]) == [["one", "two"], ["three", "four"], ["five"]]


def test_an_output_that_exists_is_replaced_only_on_request(bank, here):
    assert bank("raw.txt", "-o", "v.npy").code == 0
    before = {name: Path(name).read_bytes() for name in ("v.npy", "v.tokens.jsonl")}
    refused = bank("raw.txt", "-o", "v.npy", "--mix", "top")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == "bilmo: v.npy: already exists. Choose another name, or replace the file with --overwrite.\n"
    assert before == {name: Path(name).read_bytes() for name in before}
    assert bank("raw.txt", "-o", "v.npy", "--mix", "top", "--overwrite").code == 0
    assert before["v.npy"] != Path("v.npy").read_bytes()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", 'id,text\n1,"It wasn\'t far, was it?"\n2,\n3,"one\ntwo"\n'),
        ("x.tsv", "id\ttext\n1\tIt wasn't far, was it?\n2\t\n3\tone two\n"),
    ],
)
def test_a_column_of_a_table(bank, here, name, text):
    (here / name).write_text(text)
    assert bank(name, "-o", "v.jsonl").err.startswith(f"bilmo: {name}: this file contains a table; name the field")
    assert bank(name, "-o", "v.jsonl", "--field", "text").code == 0
    rows = [json.loads(line)["tokens"] for line in Path("v.jsonl").read_bytes().splitlines()]
    assert rows == [["It", "was", "n't", "far", ",", "was", "it", "?"], [], ["one", "two"]]
    wrong = bank(name, "-o", "w.jsonl", "--field", "body")
    assert wrong.code == 1 and wrong.err == f"bilmo: {name}: has no column 'body'; its first row names id, text\n"
    (here / name).write_text(text.replace("2", "2,5\t6"))
    wrong = bank(name, "-o", "w.jsonl", "--field", "text")
    assert wrong.code == 1 and wrong.err == f"bilmo: {name}, line 3: 3 columns; the first row names 2\n"


def test_a_line_has_the_same_tokens_in_a_file_alone_and_in_python(bank, here, elmo):
    lines = ["Don't go.", "It was n't far .", "你好，世界。Don't.", "He's in the U.S. now."]
    (here / "mixed.txt").write_text("\n".join(lines), encoding="utf-8")
    assert bank("mixed.txt", "-o", "v.jsonl").code == 0
    together = [json.loads(line)["tokens"] for line in Path("v.jsonl").read_text("utf-8").splitlines()]
    alone = [json.loads(bank(line).out)["tokens"] for line in lines]
    assert together == alone == [elmo.embed(line).tokens for line in lines]
    assert together[:2] == [["Do", "n't", "go", "."], ["It", "was", "n't", "far", "."]]


@pytest.mark.parametrize(
    ("lang", "tokens"),
    [
        ("en", ["I", "do", "n't", "like", "红楼梦", "!"]),
        ("west", ["I", "don't", "like", "红楼梦", "!"]),
        ("zh", ["I", "don't", "like", "红楼梦", "!"]),
    ],
)
def test_auto_splits_as_the_model_says_wherever_the_line_is(here, model, lang, tokens):
    model_folder.write(replace(layouts.read(model), lang=lang), here / "said")
    lines = ["I don't like 红楼梦!", "I do n't like it .", "宝玉笑道：你放心。"]
    (here / "mixed.txt").write_text("\n".join(lines), encoding="utf-8")
    assert program(here, "embed", "said", "mixed.txt", "-o", "v.jsonl").code == 0
    together = [json.loads(line)["tokens"] for line in Path("v.jsonl").read_text("utf-8").splitlines()]
    alone = [json.loads(program(here, "embed", "said", line).out)["tokens"] for line in lines]
    elmo = bilmo.load("said")
    assert together == alone == [elmo.embed(line).tokens for line in lines]
    assert together[0] == tokens and together[1] == lines[1].split()
    assert together[2][0] == ("宝玉" if lang == "zh" else "宝玉笑道")


def test_a_field_of_json_lines(bank, here, elmo):
    (here / "x.jsonl").write_text('{"text": "It wasn\'t far.", "id": 1}\n{"text": ["It", "\\ud800\\u0000 x"]}\n')
    assert bank("x.jsonl", "-o", "v.jsonl").err.startswith(
        "bilmo: x.jsonl: this file contains JSON lines; name the field"
    )
    assert bank("x.jsonl", "-o", "v.jsonl", "--field", "text").code == 0
    rows = [json.loads(line) for line in Path("v.jsonl").read_bytes().splitlines()]
    assert [row["tokens"] for row in rows] == [["It", "was", "n't", "far", "."], ["It", "\ud800\0 x"]]
    assert close(rows[1]["vectors"], elmo.embed([["It", "\ud800\0 x"]])[0])


def test_words_of_any_size_and_signs_of_any_kind(bank, here, elmo):
    long, strange = "é" * 1_000_000, "\u2028 \ufeff \U0010ffff 👩‍👩‍👧 \x01"
    (here / "t").write_text(f"a {long} b\n{strange}\n\n", encoding="utf-8")
    assert bank("t", "-o", "v.h5", "--lang", "spaces").code == 0
    with h5py.File("v.h5") as file:
        shapes = [file[str(k)].shape[1] for k in range(3)]
        assert shapes == [3, len(strange.split()), 0]
        assert close(file["1"][...], elmo.layers([strange.split()])[0])


def test_threads_and_batches_change_no_vector(bank, here, elmo):
    import torch

    before = torch.get_num_threads()
    try:
        assert bank("raw.txt", "-o", "v.npy", "--threads", 1, "--batch-tokens", 3).code == 0
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
    assert close(np.load("v.npy"), np.concatenate([found.vectors for found in elmo.embed(TEXT.split("\n")[:3])]))


def test_the_size_of_a_large_file_is_announced(bank, here, monkeypatch):
    monkeypatch.setattr("bilmo.cli.show.embedding.LARGE", 100)
    assert bank("raw.txt", "-o", "v.npy").err == "note: the size of v.npy will be about 0.0 MB\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--lang", "klingon"), "lang is 'klingon'; accepted: auto, spaces, en, west, zh"),
        (("--compress",), "v.jsonl: --compress is for .h5, .hdf5, .npz only"),
        (("--mix", "0,7"), "layers are numbered"),
    ],
)
def test_impossible_options_are_reported(bank, here, arguments, says):
    result = bank("raw.txt", "-o", "v.jsonl", *arguments)
    assert (result.code, result.out) == (1, "")
    assert says in result.err
    assert [path.name for path in here.iterdir()] == ["raw.txt"]


@pytest.mark.parametrize(
    "arguments",
    [("--threads", "0"), ("--threads", "100000"), ("--batch-tokens", "0"), ("--pool", "sum"), ("--dtype", "int8")],
)
def test_values_out_of_range_are_explained(bank, arguments):
    result = bank("raw.txt", *arguments)
    assert result.code == 2
    assert arguments[0] in result.err


def test_int8_and_precomputed_words(bank, here, elmo, model):
    expected = np.concatenate([found.vectors for found in elmo.embed(TEXT.split("\n")[:3])])
    assert bank("raw.txt", "-o", "v.npy", "--precision", "int8").code == 0
    found = np.load("v.npy")
    assert found.shape == expected.shape
    assert 1e-7 < np.abs(found - expected).max() < 0.1
    assert program(here, "word-cache", model, "raw.txt", "-o", "words.safetensors").code == 0
    assert bank("raw.txt", "-o", "w.npy", "--word-cache", "words.safetensors").code == 0
    assert close(np.load("w.npy"), expected)
    assert bank("raw.txt", "-o", "x.npy", "--word-cache", "nowhere").code == 1

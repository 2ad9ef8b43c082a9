"""The program as a user runs it: what it writes, what it prints, and what it leaves after an error."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import re
import signal
import stat
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

import bilmo
from bilmo.cli.show import tables as show
from bilmo.embed.loaded import settled
from bilmo.formats import open as layouts

import old_models
from old_models import write_checkpoint, write_hdf5, write_manylangs, zipped

TEXT = "The cat sat\n\nOslo sleeps .\nThe cat sat\n naïve  漢字\t.\n"
SENTENCES = [line.split() for line in TEXT.splitlines()]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_hdf5(tmp_path / "model", seed=1)
    return tmp_path / "model"


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model in our own folder with a stored start state; quick to load, and never changed."""
    folder = tmp_path_factory.mktemp("ready")
    write_hdf5(folder / "old", seed=1)
    layouts.write(settled(layouts.read(folder / "old")), folder / "model", "bilmo")
    return folder / "model"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path / "text.txt"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder for the output."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def everything(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def vectors(path: Path) -> tuple[list[np.ndarray], dict[str, str]]:
    with h5py.File(path) as file:
        number = sum(name.isdigit() for name in file)
        return [file[str(k)][...] for k in range(number)], json.loads(file["sentence_to_index"][0])


def assert_same(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert [values.shape for values in found] == [values.shape for values in expected]
    assert all(np.abs(a - b).max(initial=0) < 1e-6 for a, b in zip(found, expected, strict=True))


# info


def test_info_says_what_a_model_is(run, model):
    result = run("info", model)
    assert (result.code, result.err) == (0, "")
    facts = dict(re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in result.out.splitlines() if line)
    assert facts["model"] == str(model)
    assert facts["layout"] == "options.json and HDF5 weights (bilm-tf, AllenNLP)"
    assert facts["layers"] == "2 x LSTM, 6 cells, 4 wide, per direction"
    assert facts["vector"] == "3 layers of 8"
    total = sum(array.size for array in old_models.read_arrays(model / "weights.hdf5").values())
    assert facts["all parameters"] == f"{total:,}"


@pytest.mark.parametrize("write", [write_checkpoint, write_manylangs])
def test_info_on_other_layouts(run, tmp_path, write):
    write(tmp_path / "m")
    result = run("info", tmp_path / "m")
    assert result.code == 0
    assert ("softmax parameters" in result.out) == (write is write_checkpoint)
    assert ("note: not used: " in result.err) == (write is write_checkpoint)


def test_long_lines_are_never_cut_when_piped(run, tmp_path):
    deep = tmp_path / ("x" * 200) / ("y" * 200)
    write_hdf5(deep)
    assert str(deep) in run("info", deep).out


# convert


def test_convert_there_and_back_keeps_every_bit(run, tmp_path, model, out):
    result = run("convert", model, out / "ours")
    assert (result.code, result.out, result.err) == (0, f"{out / 'ours'}: written\n", "")
    assert sorted(everything(out / "ours")) == ["README.md", "config.json", "model.safetensors"]
    result = run("convert", out / "ours", out / "old", "--to", "allennlp")
    assert result.code == 0
    assert result.err == "dropped: the settled start; this layout has no place for it\n"
    before, after = (old_models.read_arrays(f / "weights.hdf5") for f in (model, out / "old"))
    assert {n: a.tobytes() for n, a in before.items()} == {n: a.tobytes() for n, a in after.items()}
    assert sorted(path.name for path in out.iterdir()) == ["old", "ours"]


def test_convert_stores_the_settled_start(run, model, out):
    run("convert", model, out / "ours")
    assert layouts.read(out / "ours").start is not None
    assert "settled start     stored" in run("info", out / "ours").out


def test_convert_names_what_is_dropped_and_what_was_noted(run, tmp_path, out):
    write_checkpoint(tmp_path / "old")
    result = run("convert", tmp_path / "old", out / "new", "--to", "allennlp")
    assert result.code == 0
    assert "dropped: the softmax; this layout has no place for it\n" in result.err
    assert "note: not used: global_step" in result.err
    assert layouts.read(out / "new").has_softmax is False
    assert run("convert", tmp_path / "old", out / "ours").code == 0
    assert layouts.read(out / "ours").has_softmax is True


def test_convert_refuses_what_the_layout_cannot_hold(run, tmp_path, out):
    write_manylangs(tmp_path / "old")
    result = run("convert", tmp_path / "old", out / "new", "--to", "allennlp")
    assert (result.code, result.out) == (1, "")
    assert "cannot hold this model" in result.err
    assert "Use bilmo's own folder" in result.err
    assert list(out.iterdir()) == []


# embed


def test_embed_writes_every_line_in_its_order(run, ready, text, out):
    result = run("embed", ready, text, "-o", out / "v.h5")
    assert (result.code, result.out, result.err) == (0, f"{out / 'v.h5'}: 5 sentences, 12 tokens, lang: auto\n", "")
    found, numbers = vectors(out / "v.h5")
    assert_same(found, bilmo.load(ready).layers(SENTENCES))
    assert numbers == {"The cat sat": "3", "": "1", "Oslo sleeps .": "2", "naïve  漢字\t.": "4"}
    assert sorted(everything(out)) == ["v.h5"]


@pytest.mark.parametrize("mix", ["mean", "top", "concat", "0", "2,0"])
def test_every_mix(run, ready, text, out, mix):
    assert run("embed", ready, text, "-o", out / "v.hdf5", "--mix", mix).code == 0
    how = tuple(map(int, mix.split(","))) if mix[0].isdigit() else mix
    assert_same(vectors(out / "v.hdf5")[0], bilmo.load(ready).embed(SENTENCES, mix=how))


@pytest.mark.parametrize("start", ["settled", "zero"])
def test_every_start(run, ready, text, out, start):
    assert run("embed", ready, text, "-o", out / "v.h5", "--start", start).code == 0
    assert_same(vectors(out / "v.h5")[0], bilmo.load(ready, start=start).layers(SENTENCES))


def test_carry_is_a_chain_of_single_calls(run, ready, text, out):
    assert run("embed", ready, text, "-o", out / "v.h5", "--start", "carry", "--mix", "top").code == 0
    elmo = bilmo.load(ready, start="carry")
    found = vectors(out / "v.h5")[0]
    assert_same(found, [elmo.embed([sentence], mix="top")[0] for sentence in SENTENCES])
    assert not np.allclose(found[0], found[3], atol=1e-3)


def test_more_sentences_than_are_held_at_a_time(run, ready, out, monkeypatch):
    monkeypatch.setattr("bilmo.embed.job.PART_TOKENS", 9)
    rows = [f"word{k % 5}" for k in range(10)]
    result = run("embed", ready, "-", "-o", out / "v.h5", "--lang", "spaces", stdin="\n".join(rows).encode())
    assert result.out.endswith(": 10 sentences, 10 tokens, lang: spaces\n")
    assert_same(vectors(out / "v.h5")[0], bilmo.load(ready).layers([[row] for row in rows]))


@pytest.mark.parametrize("packed", [False, True], ids=["piped", "packed"])
def test_text_from_a_pipe_or_a_packed_file(run, ready, tmp_path, out, packed):
    if packed:
        (tmp_path / "text.gz").write_bytes(gzip.compress(TEXT.encode()))
        result = run("embed", ready, tmp_path / "text.gz", "-o", out / "v.h5")
    else:
        result = run("embed", ready, "-", "-o", out / "v.h5", stdin=TEXT.encode())
    assert result.code == 0
    assert_same(vectors(out / "v.h5")[0], bilmo.load(ready).layers(SENTENCES))


def test_an_empty_text_gives_no_vectors(run, ready, out):
    assert ": 0 sentences, 0 tokens" in run("embed", ready, "-", "-o", out / "v.h5", "--lang", "spaces").out
    assert vectors(out / "v.h5") == ([], {})


def test_embed_replaces_a_file_only_if_it_succeeds(run, ready, text, out, tmp_path):
    (out / "v.h5").write_text("old")
    (tmp_path / "bad.txt").write_bytes(b"fine\n" * 600 + b"\xff\n")
    assert run("embed", ready, tmp_path / "bad.txt", "-o", out / "v.h5", "--overwrite").code == 1
    assert everything(out) == {"v.h5": b"old"}
    assert run("embed", ready, text, "-o", out / "v.h5", "--overwrite").code == 0
    assert len(vectors(out / "v.h5")[0]) == 5


# Models that cannot be read


def broken_hdf5(change: Callable[[h5py.File, Path], None]) -> Callable[[Path], None]:
    """A function that writes a model with one changed tensor."""

    def make(folder: Path) -> None:
        write_hdf5(folder)
        with h5py.File(folder / "weights.hdf5", "a") as file:
            del file["CNN_proj/b_proj"]
            change(file, folder)

    return make


def zip_of(*members: tuple[str, bytes, int]) -> Callable[[Path], None]:
    """A function that writes a zip instead of a model."""

    def make(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for name, content, mode in members:
                member = zipfile.ZipInfo(name)
                member.create_system, member.external_attr = 3, mode << 16
                archive.writestr(member, content)

    return make


def two_weights(folder: Path) -> None:
    write_hdf5(folder, weights_name="first.hdf5")
    write_hdf5(folder, weights_name="second.hdf5")


def without(write: Callable[[Path], object], name: str, content: bytes | None = None) -> Callable[[Path], None]:
    """A function that writes a model without one of its files, or with other content in it."""

    def make(folder: Path) -> None:
        write(folder)
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_bytes(content)

    return make


def cut(write: Callable[[Path], object], name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """A function that writes a model with one changed file."""

    def make(folder: Path) -> None:
        write(folder)
        (folder / name).write_bytes(change((folder / name).read_bytes()))

    return make


def write_own(folder: Path) -> None:
    write_hdf5(folder.parent / "source")
    layouts.write(layouts.read(folder.parent / "source"), folder, "bilmo")


def write_words(folder: Path) -> None:
    write_hdf5(folder, words=True)


def bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("weights.hdf5", "w") as member:
        for _ in range(80):
            member.write(bytes(1 << 20))


def cut_zip(path: Path) -> None:
    write_hdf5(path.parent / "source")
    zipped(path.parent / "source", path)
    path.write_bytes(path.read_bytes()[:-30])


class Evil:
    def __reduce__(self):
        return os.mkdir, ("evil trace",)


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (lambda path: None, "m: there is no such file or folder"),
    "an empty folder": (
        lambda path: path.mkdir(),
        "m: is not a model; it contains nothing. Accepted: a folder with config",
    ),
    "a text": (lambda path: path.write_text("hello"), "m: is not a model. Accepted: a folder or zip with"),
    "no options": (without(write_hdf5, "options.json"), "Put the model's own options.json next to it"),
    "options cut short": (cut(write_hdf5, "options.json", lambda b: b[:40]), "options.json: is not JSON"),
    "options of another kind": (
        without(write_hdf5, "options.json", b"{}"),
        "options.json: invalid settings.*lstm: Field requi",
    ),
    "two weights files": (two_weights, "first.hdf5, second.hdf5 each contain .* Give the path of one of them"),
    "a missing tensor": (broken_hdf5(lambda *_: None), r"b_proj is missing; its shape must be \(4,\)"),
    "a misshapen tensor": (
        broken_hdf5(lambda file, _: file.create_dataset("CNN_proj/b_proj", data=np.ones(5, "f4"))),
        r"b_proj has shape \(5,\); it must be \(4,\)",
    ),
    "not a number": (
        broken_hdf5(lambda file, _: file.create_dataset("CNN_proj/b_proj", data=np.full(4, np.nan, "f4"))),
        "b_proj: 4 of 4 values are not finite. The file is damaged",
    ),
    "a link to another file": (
        broken_hdf5(lambda file, _: file.__setitem__("CNN_proj/b_proj", h5py.ExternalLink("/etc/passwd", "/x"))),
        "b_proj is a link .* copy them into it",
    ),
    "a soft link": (
        broken_hdf5(lambda file, _: file.__setitem__("CNN_proj/b_proj", h5py.SoftLink("/CNN"))),
        "b_proj is a link",
    ),
    "values elsewhere": (
        broken_hdf5(lambda f, d: f.create_dataset("CNN_proj/b_proj", (4,), "f4", external=[(str(d / "x"), 0, 16)])),
        "b_proj stores its values in another file",
    ),
    "a giant claim": (
        broken_hdf5(
            lambda file, _: file.create_dataset("CNN_proj/b_proj", (4,), "f4", chunks=(2**28,), maxshape=(None,))
        ),
        "b_proj claims 1,073,741,824 bytes in a file of",
    ),
    "weights cut short": (
        cut(write_hdf5, "weights.hdf5", lambda b: b[: len(b) // 2]),
        "weights.hdf5: cannot be read as HDF5 .* truncated, damaged",
    ),
    "a checkpoint cut short": (
        cut(write_checkpoint, "model.ckpt-935588.data-00000-of-00001", lambda b: b[:100]),
        "Copy all files of the checkpoint again",
    ),
    "a checkpoint with a wrong bit": (
        cut(write_checkpoint, "model.ckpt-935588.index", lambda b: b[:50] + bytes([b[50] ^ 1]) + b[51:]),
        "checksum .* Copy all files of the checkpoint again",
    ),
    "a table without its words": (without(write_words, "vocab.txt"), "vocab.txt: is missing; it must name the 10 rows"),
    "a table with other words": (
        without(write_words, "vocab.txt", b"<S>\n</S>\n<UNK>\n"),
        "vocab.txt: has 3 entries, but the weights have 10 rows. They belong to different models",
    ),
    "words that are no text": (without(write_words, "vocab.txt", b"\xff"), "vocab.txt, line 1: .* iconv"),
    "a zip that climbs out": (zip_of(("../evil", b"", 0o644)), "m: '../evil' would be unpacked outside its folder"),
    "a zip from the root": (zip_of(("/evil", b"", 0o644)), "m: '/evil' would be unpacked outside its folder"),
    "a zip with a link": (zip_of(("x", b"/etc/passwd", stat.S_IFLNK | 0o777)), "m: 'x' is a link; a model may contain"),
    "a bomb": (bomb, "m: would unpack from .* to 83,886,080 bytes"),
    "a zip of no model": (zip_of(("readme", b"", 0o644)), "m: is not a model; it contains readme. Accepted: a folder"),
    "a zip cut short": (cut_zip, "m: "),
    "a pickle that runs code": (
        without(write_manylangs, "encoder.pkl", pickle.dumps(Evil())),
        "encoder.pkl: cannot be read .* never runs code from a pickle",
    ),
    "a pickle cut short": (
        cut(write_manylangs, "token_embedder.pkl", lambda b: b[:1000]),
        "token_embedder.pkl: cannot be read as a dictionary of tensors",
    ),
    "a dictionary of another model": (
        without(write_manylangs, "word.dic", b"<oov>\t0\n<bos>\t1\n<eos>\t2\n"),
        r"word.dic: its ids go from 0 to 2 \(3 in all\), but the weights have 8 rows. The files belong to",
    ),
    "no dictionary": (without(write_manylangs, "char.dic"), "char.dic: is missing"),
    "a model of another kind": (
        lambda path: write_manylangs(path, more={"encoder": {"name": "lstm"}}),
        "cnn_small.json: invalid settings.*encoder.name: Input should be 'elmo'; found 'lstm'",
    ),
    "our weights with a wrong bit": (
        cut(write_own, "model.safetensors", lambda b: b[:-5] + bytes([b[-5] ^ 1]) + b[-4:]),
        "model.safetensors: is not the file that was saved .* Download or convert the model again",
    ),
    "our weights cut short": (
        cut(write_own, "model.safetensors", lambda b: b[:-5]),
        "model.safetensors: is not the file that was saved .* Download or convert",
    ),
    "our settings misspelt": (
        cut(write_own, "config.json", lambda b: b.replace(b'"width"', b'"widht"', 1)),
        "config.json: invalid settings.*widht",
    ),
    "a newer folder": (
        cut(write_own, "config.json", lambda b: b.replace(b'"bilmo_format": 3', b'"bilmo_format": 9')),
        "config.json: has format 9; this version of bilmo reads formats 1 to 3. Install a newer version",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_the_error_for_a_bad_model_says_what_to_do_and_nothing_is_written(run, tmp_path, text, out, bad, monkeypatch):
    make, says = BAD[bad]
    make(tmp_path / "m")
    monkeypatch.chdir(out)
    commands = [
        ("info", tmp_path / "m"),
        ("convert", tmp_path / "m", out / "new"),
        ("convert", tmp_path / "m", out / "new", "--to", "allennlp"),
        ("embed", tmp_path / "m", text, "-o", out / "v.h5"),
    ]
    for command in commands:
        result = run(*command)
        assert (result.code, result.out) == (1, "")
        assert result.err.startswith("bilmo: ")
        assert str(tmp_path / "m") in result.err
        assert re.search(says, result.err, re.DOTALL)
        assert "Traceback" not in result.err
        assert "/bilmo-" not in result.err  # the temporary folder, which no longer exists
        assert list(out.iterdir()) == []


# Output that cannot be written


def test_a_target_that_exists_is_never_touched(run, model, out):
    (out / "new").mkdir()
    (out / "new" / "precious").write_text("x")
    (out / "file").write_text("x")
    for name in ("new", "file"):
        for to in ("bilmo", "allennlp"):
            result = run("convert", model, out / name, "--to", to)
            assert result.code == 1
            assert result.err == f"bilmo: {out / name}: already exists. Choose another name, or remove it first.\n"
    assert everything(out / "new") == {"precious": b"x"}
    assert sorted(path.name for path in out.iterdir()) == ["file", "new"]


def test_a_model_is_never_converted_onto_itself(run, model):
    before = everything(model)
    assert run("convert", model, model).code == 1
    assert everything(model) == before


@pytest.mark.parametrize("place", ["nowhere/new", "file/new", "n" * 300])
def test_a_missing_folder_is_reported(run, model, text, out, place):
    (out / "file").write_text("x")
    cure = "Create it first" if place == "nowhere/new" else "cannot be written"
    for command in (("convert", model, out / place), ("embed", model, text, "-o", out / f"{place}.h5")):
        result = run(*command)
        assert (result.code, result.out) == (1, "")
        assert str(out / place) in result.err
        assert cure in result.err
        assert everything(out) == {"file": b"x"}


def test_a_folder_without_write_permission_is_reported(run, model, text, out):
    out.chmod(0o500)
    if os.access(out, os.W_OK):
        pytest.skip("this user may write everywhere")
    for command in (("convert", model, out / "new"), ("embed", model, text, "-o", out / "v.h5")):
        result = run(*command)
        assert result.code == 1
        assert "cannot be written (Permission denied)" in result.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("{text}", "-o", "{out}/v.txt"),
            "v.txt: the extension selects the format; accepted: .h5, .hdf5, .parquet",
        ),
        (("{text}", "-o", "{out}"), "out: the extension selects the format"),
        (("{out}/nowhere.txt", "-o", "{out}/v.h5"), "nowhere.txt: there is no such file"),
        (("{out}", "-o", "{out}/../v.h5"), "out: the folder contains no files"),
        (
            ("{text}", "-o", "{out}/v.h5", "--mix", "best"),
            "--mix is 'best'; accepted: all, mean, top, concat, or layer numbers",
        ),
        (("{text}", "-o", "{out}/v.h5", "--mix", ""), "--mix is ''"),
        (("{text}", "-o", "{out}/v.h5", "--mix", "0,9"), "layers are numbered 0 (the word) to 2"),
        (("{text}", "-o", "{out}/v.h5", "--mix", "-1"), "layers are numbered 0 (the word) to 2"),
        (("{text}", "-o", "{out}/v.h5", "--mix", "weighted"), "--mix is 'weighted'"),
    ],
)
def test_a_request_that_cannot_be_met_is_reported_and_nothing_is_written(run, ready, text, out, arguments, says):
    result = run("embed", ready, *(argument.format(text=text, out=out) for argument in arguments))
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("bilmo: ")
    assert says in result.err
    assert list(out.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"fine\nna\xefve\n", "text, line 2: byte 3 (0xef) is not UTF-8"),
        (gzip.compress(b"some words\n" * 100)[:-9], "text: decompression failed after line"),
        (gzip.compress(b"some words\n" * 100)[:12] + b"x" * 30, "text: decompression failed"),
    ],
    ids=["not UTF-8", "cut short", "damaged"],
)
def test_text_that_cannot_be_read_is_reported_and_nothing_is_written(run, ready, tmp_path, out, content, says):
    (tmp_path / "text").write_bytes(content)
    result = run("embed", ready, tmp_path / "text", "-o", out / "v.h5")
    assert (result.code, result.out) == (1, "")
    assert says in result.err
    assert list(out.iterdir()) == []


TEXT_COMMANDS = [
    ("embed", "{model}", "{text}"),
    ("embed", "{model}", "{text}", "-o", "v.h5"),
    ("embed", "{model}", "{text}", "--field", "x"),
    ("evaluate", "{model}", "{text}"),
    ("word-cache", "{model}", "{text}", "-o", "words"),
    ("similar", "{model}", "cat", "--in", "{text}"),
    ("train", "{text}", "-o", "new"),
    ("finetune", "{model}", "{text}", "-o", "new"),
    ("fit", "classify", "{model}", "--train", "{text}", "-o", "new"),
    ("fit", "tag", "{model}", "--train", "{text}", "-o", "new"),
    ("compare", "classify", "{model}", "--train", "{text}"),
]


@pytest.mark.parametrize("command", TEXT_COMMANDS, ids=lambda command: " ".join(command[::2]))
def test_every_command_refuses_utf16_without_a_byte_order_mark(run, ready, tmp_path, out, monkeypatch, command):
    (tmp_path / "text").write_bytes("a\tcat sat\n".encode("utf-16-le") * 30)
    monkeypatch.chdir(out)
    result = run(*(part.format(model=ready, text=tmp_path / "text") for part in command))
    assert (result.code, result.out) == (1, "")
    assert "text, line 1: contains zero bytes, so it is not UTF-8 text." in result.err
    assert list(out.iterdir()) == []


def test_errors_of_the_file_system_are_reported_without_a_traceback(run, model, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bilmo.cli.show.tables.pairs", full)
    result = run("info", model)
    assert (result.code, result.err) == (1, "bilmo: [Errno 28] No space left on device\n")


# Usage


@pytest.mark.parametrize("arguments", [("info",), ("convert", "a"), ("embed", "a"), ("nonsense",), ("info", "a", "b")])
def test_wrong_arguments_are_explained(run, arguments):
    result = run(*arguments)
    assert result.code == 2
    assert "Usage: " in result.err


@pytest.mark.parametrize("option", ["--to", "--start"])
def test_an_unknown_choice_is_explained(run, option):
    command = {"--to": ("convert", "a", "b"), "--start": ("embed", "a", "b", "-o", "c.h5")}[option]
    result = run(*command, option, "nonsense")
    assert result.code == 2
    assert "nonsense" in result.err


def test_the_version(run):
    assert run("--version").out == f"{bilmo.__version__}\n"


@pytest.mark.parametrize("arguments", [("--help",), ("info", "-h"), ("convert", "--help"), ("embed", "--help")])
def test_help(run, arguments):
    result = run(*arguments)
    assert result.code == 0
    assert "Usage: " in result.out


# In a process of its own


def test_help_never_waits_for_torch():
    code = (
        "import sys\n"
        "from bilmo.cli.app import main\n"
        "for command in ([], ['info'], ['convert'], ['embed']):\n"
        "    sys.argv = ['bilmo', *command, '--help']\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as stop:\n"
        "        assert not stop.code\n"
        "slow = {'torch', 'numpy', 'h5py', 'safetensors'}\n"
        "print('loaded:', *sorted(slow & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded:"


def test_text_in_a_pipe_becomes_vectors_in_a_file(start, ready, tmp_path):
    process = start("embed", ready, "-", "-o", tmp_path / "v.h5")
    output, error = process.communicate(TEXT)
    assert (process.returncode, error) == (0, "")
    assert output == f"{tmp_path / 'v.h5'}: 5 sentences, 12 tokens, lang: auto\n"
    assert_same(vectors(tmp_path / "v.h5")[0], bilmo.load(ready).layers(SENTENCES))


def test_a_mistake_is_one_message_and_exit_code_1(start, tmp_path):
    process = start("info", tmp_path / "nowhere")
    output, error = process.communicate()
    assert (process.returncode, output) == (1, "")
    assert error == f"bilmo: {tmp_path / 'nowhere'}: there is no such file or folder\n"


def test_an_interrupted_run_leaves_no_incomplete_file(start, ready, out, tmp_path):
    """While both runs wait for more input, one is interrupted as by Ctrl-C, the other is killed."""
    other = tmp_path / "other"
    other.mkdir()
    runs = {signal.SIGINT: (start("embed", ready, "-", "-o", out / "v.h5"), out)}
    runs[signal.SIGKILL] = (start("embed", ready, "-", "-o", other / "v.h5"), other)
    for process, folder in runs.values():
        process.stdin.write("some words\n" * 40_000)
        process.stdin.flush()
        wait_for(lambda folder=folder: any(folder.glob(".v.h5.parts/*.part")), process)
    for number, (process, _) in runs.items():
        process.send_signal(number)
    interrupted, killed = (process for process, _ in runs.values())
    _, error = interrupted.communicate()
    assert interrupted.returncode == 130
    assert error == ("note: standard input cannot be read twice, so this run cannot be resumed\nbilmo: interrupted\n")
    assert list(out.iterdir()) == []
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert not (other / "v.h5").exists()
    assert all(path.name.startswith(".") for path in other.iterdir())


def wait_for(event: Callable[[], object], process: subprocess.Popen) -> None:
    while not event():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)


def test_of_two_converts_to_one_target_exactly_one_wins(start, model, out):
    runs = [start("convert", model, out / "new") for _ in range(2)]
    errors = [process.communicate()[1] for process in runs]
    codes = [process.returncode for process in runs]
    assert sorted(codes) == [0, 1]
    assert str(out / "new") in errors[codes.index(1)]
    assert "Traceback" not in errors[codes.index(1)]
    assert [path.name for path in out.iterdir()] == ["new"]
    assert torch.equal(
        layouts.read(out / "new").weights["words.project.bias"], layouts.read(model).weights["words.project.bias"]
    )


def test_waiting_threads_soon_sleep_unless_the_user_has_set_a_policy(run, monkeypatch):
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.setenv(name, "")  # so that monkeypatch restores both
        monkeypatch.delenv(name)
    run("--version")
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE" and os.environ["GOMP_SPINCOUNT"] == "2000"
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    monkeypatch.delenv("GOMP_SPINCOUNT")
    run("--version")
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE" and "GOMP_SPINCOUNT" not in os.environ


def test_words_are_shown_as_they_are(capsys):
    show.table(["word", "share"], [[":smile:", "[bold]"]])
    show.pairs([("[red]", ":heart:")])
    assert capsys.readouterr().out.split() == ["word", "share", ":smile:", "[bold]", "[red]", ":heart:"]

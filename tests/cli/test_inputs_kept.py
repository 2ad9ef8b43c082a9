"""No command writes onto its inputs, whatever name the output has, nor onto files of the user beside the output."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bilmo.store import model_folder
from program import program
from small_runs import RECIPE

from old_models import write_hdf5
from task_data import made, texts


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that commands read."""
    here = tmp_path_factory.mktemp("inputs")
    model_folder.write(made(0), here / "model")
    write_hdf5(here / "old", seed=1)
    write_hdf5(here, seed=1, weights_name="single.hdf5", options_name="single_options.json")
    write_hdf5(here / "two", seed=1, weights_name="a_weights.hdf5", options_name="a_options.json")
    write_hdf5(here / "two", seed=2, weights_name="b_weights.hdf5", options_name="b_options.json")
    (here / "text.txt").write_text("the cat sat\n" * 30)
    (here / "d.jsonl").write_text('{"text": "the cat sat"}\n' * 3)
    (here / "folder" / "deep").mkdir(parents=True)
    (here / "folder" / "deep" / "e.jsonl").write_text('{"text": "the dog sat"}\n')
    (here / "folder" / "v.npy").write_text("not vectors, but text\n")
    (here / "recipe.toml").write_text(RECIPE)
    rows = "".join(f"{label}\t{text}\n" for text, label in zip(*texts(30), strict=True))
    (here / "data.tsv").write_text(rows)
    (here / "words.vec").write_text("the 1 2 3\ncat 3 4 5\n")
    (here / "classes" / "a").mkdir(parents=True)
    (here / "classes" / "a" / "1.txt").write_text("the cat")
    assert program(here, "word-cache", "model", "text.txt", "-o", "words.jsonl").code == 0
    options = ("--hidden", 4, "--epochs", 1, "--cache", here / "layers")
    assert program(here, "fit", "classify", "model", "--train", "data.tsv", "-o", "saved", *options).code == 0
    return here


@pytest.fixture
def here(made_once: Path, tmp_path: Path, monkeypatch) -> Path:
    shutil.copytree(made_once, tmp_path / "here")
    (tmp_path / "here" / "recorded").symlink_to(made_once / "model")  # where the task was fitted
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def everything(folder: Path) -> dict[str, bytes | str]:
    """All files with their content, all links with their targets."""
    entries = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {
        name: str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for name, path in entries.items()
        if path.is_symlink() or path.is_file()
    }


def renamed(output: str, ending: str) -> dict[str, Callable[[], str]]:
    """Other names of a file; each function makes one and returns it."""
    other = Path(f"other{ending}")

    def soft_link() -> str:
        other.symlink_to(output)
        return str(other)

    def hard_link() -> str:
        other.hardlink_to(output)
        return str(other)

    def linked_folder() -> str:
        Path("linked").symlink_to(Path(output).parent, target_is_directory=True)
        return f"linked/{Path(output).name}"

    return {
        "the same name": lambda: output,
        "absolute": lambda: str(Path(output).absolute()),
        "relative": lambda: f"folder/../{output}",
        "a link": soft_link,
        "a hard link": hard_link,
        "a linked folder": linked_folder,
    }


INPUTS = {
    "embed": (("embed", "model", "d.jsonl", "--field", "text"), "d.jsonl"),
    "embed, several": (("embed", "model", "text.txt", "d.jsonl", "--field", "text"), "d.jsonl"),
    "embed, of a folder": (("embed", "model", "folder", "--field", "text"), "folder/deep/e.jsonl"),
    "embed, word cache": (("embed", "model", "text.txt", "--word-cache", "words.jsonl"), "words.jsonl"),
    "embed, weights": (("embed", "old", "text.txt"), "old/weights.hdf5"),
    "embed, weights file": (("embed", "single.hdf5", "text.txt"), "single.hdf5"),
    "embed, weights beside": (("embed", "two/a_weights.hdf5", "text.txt"), "two/b_weights.hdf5"),
    "cache": (("word-cache", "model", "text.txt"), "text.txt"),
    "cache, weights": (("word-cache", "model", "text.txt"), "model/model.safetensors"),
    "cache, options": (("word-cache", "single.hdf5", "text.txt"), "single_options.json"),
    "predict": (("predict", "saved", "data.tsv"), "data.tsv"),
    "predict, task": (("predict", "saved", "data.tsv"), "saved/config.json"),
    "predict, model": (("predict", "saved", "data.tsv", "--model", "model"), "model/config.json"),
    "predict, recorded model": (("predict", "saved", "data.tsv"), "recorded/config.json"),
    "compare": (("compare", "classify", "model", "--train", "data.tsv"), "data.tsv"),
    "compare, dev": (("compare", "classify", "model", "--train", "data.tsv", "--dev", "text.txt"), "text.txt"),
    "compare, vectors": (
        ("compare", "classify", "model", "--train", "data.tsv", "--vectors", "words.vec"),
        "words.vec",
    ),
}


@pytest.mark.parametrize("name", renamed("", ""))
@pytest.mark.parametrize("inputs", INPUTS)
def test_an_output_that_is_an_input_is_refused_under_every_name(here, inputs, name):
    command, output = INPUTS[inputs]
    given = renamed(output, Path(output).suffix)[name]()
    before = everything(here)
    result = program(here, *command, "-o", given)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"bilmo: {given}: is ")
    assert "which would be overwritten. Choose another name" in result.err or "Choose a folder outside it" in result.err
    assert everything(here) == before


@pytest.mark.parametrize(
    "command",
    [
        ("embed", "model", "folder", "-o", "folder/new.npy"),
        ("embed", "model", "folder", "-o", "folder/deep/../.new.npy"),
        ("word-cache", "model", "folder", "-o", "folder/deep/new"),
        ("train", "folder", "-o", "folder/new", "--recipe", "recipe.toml"),
        ("finetune", "model", "folder", "-o", "folder/new"),
        ("fit", "classify", "model", "--train", "classes", "-o", "classes/new"),
        ("predict", "saved", "classes", "-o", "classes/new.tsv"),
        ("compare", "classify", "model", "--train", "classes", "-o", "classes/new.md"),
    ],
    ids=lambda command: command[0],
)
def test_an_output_in_a_folder_whose_files_are_all_read_is_refused(here, command):
    before = everything(here)
    result = program(here, *command)
    assert (result.code, result.out) == (1, "")
    assert "whose files are all read as text. Choose a folder outside it." in result.err
    assert everything(here) == before


@pytest.mark.parametrize("folder", ["saved", "recorded"])
@pytest.mark.parametrize(
    "command", [("predict", "saved", "data.tsv"), ("score", "saved", "data.tsv")], ids=lambda c: c[0]
)
def test_a_sub_folder_in_a_saved_task_or_its_model_is_no_obstacle(here, command, folder):
    expected = program(here, *command)
    (here / folder / "notes").mkdir()
    output = ("-o", "new.tsv") if command[0] == "predict" else ()
    result = program(here, *command, *output)
    (here / folder / "notes").rmdir()
    assert result.code == expected.code == 0
    assert (Path("new.tsv").read_text() if output else result.out) == expected.out


def test_an_array_may_be_replaced_beside_a_weights_file(here):
    for more in ((), ("--overwrite",)):
        assert program(here, "embed", "two/a_weights.hdf5", "text.txt", "-o", "two/v.h5", *more).code == 0


def test_an_input_in_the_folder_of_a_run_is_refused(here):
    (here / "saved" / "more.tsv").write_bytes((here / "data.tsv").read_bytes())
    before = everything(here)
    result = program(here, "fit", "classify", "model", "--train", "saved/more.tsv", "-o", "saved")
    assert (result.code, result.err) == (
        1,
        "bilmo: saved: contains the input saved/more.tsv. Choose another folder.\n",
    )
    assert everything(here) == before


# Files beside the output


@pytest.mark.parametrize("is_input", [False, True])
def test_tokens_beside_an_array_never_replace_a_file(here, is_input):
    (here / "v.tokens.jsonl").write_text('{"text": "mine"}\n')
    before = everything(here)
    inputs = ("v.tokens.jsonl", "--field", "text") if is_input else ("text.txt",)
    result = program(here, "embed", "model", *inputs, "-o", "v.npy")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("bilmo: v.tokens.jsonl: ")
    says = "is the input v.tokens.jsonl" if is_input else "already exists, and would be replaced"
    assert says in result.err and "another name" in result.err
    assert everything(here) == before


def test_an_array_is_written_again_when_its_tokens_are_moved_away(here):
    command = ("embed", "model", "text.txt", "-o", "v.npy")
    assert program(here, *command).code == 0
    Path("v.npy").unlink()
    before = everything(here)
    assert program(here, *command).code == 1
    assert everything(here) == before
    Path("v.tokens.jsonl").rename("old.jsonl")
    assert program(here, *command).code == 0
    assert Path("v.tokens.jsonl").read_bytes() == Path("old.jsonl").read_bytes()


def test_an_output_that_exists_and_is_no_input_is_replaced(here):
    Path("v.jsonl").write_text("old")
    Path("link.npz").symlink_to("text.txt")
    for output in ("v.jsonl", "link.npz"):
        done = program(here, "embed", "model", "d.jsonl", "--field", "text", "-o", output, "--overwrite")
        assert done.code == 0, done.err
    assert len([json.loads(line) for line in Path("v.jsonl").read_text().splitlines()]) == 3
    assert Path("text.txt").read_text() == "the cat sat\n" * 30  # the link was replaced, not the file behind it
    with np.load("link.npz") as found:
        assert len(found["vectors"]) == 9


# The work folder


@pytest.mark.parametrize("kind", ["a link", "a folder", "a folder with a lock"])
@pytest.mark.parametrize("command", ["embed", "train", "fit"])
def test_a_work_folder_that_is_not_a_runs_own_is_left_alone(here, command, kind):
    work = Path(".v.npy.parts") if command == "embed" else Path("new/training")
    theirs = Path("theirs") if kind == "a link" else work
    theirs.mkdir(parents=True)
    names = ["precious.txt", "00000.part", "checkpoint.safetensors", "joined"]
    for name in (*names, *(["bilmo.lock"] if kind != "a folder" else [])):
        (theirs / name).write_text(f"my {name}")
    if kind == "a link":
        work.parent.mkdir(exist_ok=True)
        work.symlink_to(theirs.absolute(), target_is_directory=True)
    before = everything(here)
    commands = {
        "embed": ("embed", "model", "text.txt", "-o", "v.npy"),
        "train": ("train", "text.txt", "-o", "new", "--recipe", "recipe.toml"),
        "fit": ("fit", "classify", "model", "--train", "data.tsv", "-o", "new", "--cache", here.parent / "layers"),
    }
    result = program(here, *commands[command])
    assert (result.code, result.out) == (1, "")
    assert "is a link, which bilmo does not follow" in result.err or "already exists and " in result.err
    assert everything(here) == before

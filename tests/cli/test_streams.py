r"""What the program prints, on any system: UTF-8, with escapes for what UTF-8 cannot hold; also to closed streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from bilmo.store import model_folder
from program import Result, program

from task_data import made, texts

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs file names of any bytes, and /dev/full")
SYSTEMS = {
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "cp1252": {"PYTHONIOENCODING": "cp1252:strict"},
}
"""Systems on which Python would print in another encoding than UTF-8."""
WORD = "漢é🙂"
LONE = "\ud800"
"""A lone surrogate, which UTF-8 cannot hold; JSON can, as an escape."""


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, data whose labels are no valid text, and a task that was fitted on them."""
    here = tmp_path_factory.mktemp("streams")
    model_folder.write(made(0), here / "model")
    labels = {"animal": f"animal{LONE}", "colour": WORD}
    rows = [{"text": f"{text} {LONE}x", "label": labels[label]} for text, label in zip(*texts(30), strict=True)]
    (here / "data.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    options = ("--hidden", 4, "--epochs", 1, "--cache", here / "layers")
    fitted = program(
        here, "fit", "classify", "model", "--train", "data.jsonl", "--test", "data.jsonl", "-o", "saved", *options
    )
    assert fitted.code == 0, fitted.err
    assert r"animal\ud800" in fitted.out and WORD in fitted.out
    return here


@pytest.fixture
def here(made_once: Path, tmp_path: Path) -> Path:
    for path in made_once.iterdir():
        (tmp_path / path.name).symlink_to(path)
    return tmp_path


def process(here: Path, *arguments: str | bytes, environment: Mapping[str, str] = MappingProxyType({})) -> Result:
    """The program in a process of its own; all that it prints must be UTF-8."""
    return result([sys.executable, "-m", "bilmo", *arguments], here, os.environ | dict(environment))


def result(command: Sequence[str | bytes], here: Path, environment: Mapping[str, str]) -> Result:
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True, check=False)
    out, err = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
    assert "Traceback" not in out + err and "Exception ignored" not in err, err
    return Result(done.returncode, out, err)


def shell(here: Path, redirection: str, *arguments: str) -> Result:
    """The program, started by a shell that closes or redirects streams."""
    given = ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "bilmo", *arguments]
    return result(given, here, os.environ)


# Encodings


@pytest.mark.parametrize("system", SYSTEMS)
def test_results_are_utf8_on_every_system(here, system):
    done = process(here, "predict", "saved", "data.jsonl", environment=SYSTEMS[system])
    assert done.code == 0, done.err
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert len(rows) == 30 and {label for label, _ in rows} <= {r"animal\ud800", WORD}
    assert all(text.endswith(r" \ud800x") for _, text in rows)


def test_text_on_the_command_line_is_utf8_also_where_python_cannot_decode_it(here):
    done = process(here, "embed", "model", f"{WORD} x", "--lang", "spaces", environment=SYSTEMS["C"])
    assert done.code == 0, done.err
    assert json.loads(done.out)["tokens"] == [WORD, "x"]


def test_text_on_the_command_line_that_is_not_utf8_is_refused(here):
    done = process(here, "embed", "model", b"caf\xe9 x")
    assert (done.code, done.out) == (1, "")
    assert done.err == "bilmo: 'caf\\udce9 x': this text is not UTF-8. Write it to a UTF-8 file, and name the file.\n"


@pytest.mark.parametrize("system", SYSTEMS)
def test_errors_are_utf8_on_every_system(here, system):
    done = process(here, "info", WORD, environment=SYSTEMS[system])
    assert done.code == 1
    name = os.fsencode(WORD).decode("ascii", "surrogateescape") if system == "C" else WORD
    assert name.encode("utf-8", "backslashreplace").decode() in done.err


# Lone surrogates in data


@pytest.mark.parametrize("to", ["table", "csv", "jsonl"])
def test_predictions_with_lone_surrogates_are_written(here, to):
    done = program(here, "predict", "saved", "data.jsonl", "-o", "out", "--to", to, "--probabilities")
    assert done.code == 0, done.err
    rows = (here / "out").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 30 + (to != "jsonl") and all(r"\ud800x" in row for row in rows[-30:])
    if to == "jsonl":
        assert {json.loads(row)["label"] for row in rows} <= {f"animal{LONE}", WORD}
        assert json.loads(rows[0])["text"].endswith(f" {LONE}x")


def test_a_task_keeps_labels_with_lone_surrogates(here):
    config = json.loads((here / "saved" / "config.json").read_bytes())
    assert sorted(config["prepared"]["labels"]) == sorted([f"animal{LONE}", WORD])
    assert r"animal\ud800" in (here / "saved" / "README.md").read_text(encoding="utf-8")
    scored = program(here, "score", "saved", "data.jsonl")
    assert scored.code == 0 and r"animal\ud800" in scored.out and WORD in scored.out


@pytest.mark.parametrize("lang", ["spaces", "en", "west", "zh"])
def test_texts_with_lone_surrogates_are_embedded_in_every_way_of_splitting(here, lang):
    (here / "x.jsonl").write_text('{"text": "漢字\\ud800 he didn\'t\\udc00."}\n')
    for ending in (".jsonl", ".npz", ".h5", ".parquet"):
        done = program(here, "embed", "model", "x.jsonl", "--field", "text", "--lang", lang, "-o", f"v{ending}")
        assert done.code == 0, done.err
    assert LONE in "".join(json.loads((here / "v.jsonl").read_bytes())["tokens"])


def test_tags_with_lone_surrogates_are_fitted_and_predicted(here):
    rows = [{"tokens": [f"a{n}", f"b{LONE}"], "tags": [f"X{LONE}", "Y"]} for n in range(20)]
    (here / "tags.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    options = ("--hidden", 4, "--epochs", 1, "--cache", here / "cache")
    fitted = program(
        here, "fit", "tag", "model", "--train", "tags.jsonl", "--test", "tags.jsonl", "-o", "tagger", *options
    )
    assert fitted.code == 0, fitted.err
    for to in ("conll", "table", "csv", "jsonl"):
        done = program(here, "predict", "tagger", "tags.jsonl", "--to", to)
        assert done.code == 0 and r"b\ud800" in done.out


# Closed and full streams


@pytest.mark.parametrize("command", [("--version",), ("embed", "model", "a b", "-o", "v.npy")])
def test_a_closed_standard_output_is_refused_before_anything_is_done(here, command):
    before = sorted(here.iterdir())
    done = shell(here, ">&-", *command)
    assert (done.code, done.out) == (1, "")
    assert done.err == "bilmo: standard output is closed. Redirect it to a file, or to /dev/null if it is not needed.\n"
    assert sorted(here.iterdir()) == before


def test_notes_and_errors_for_a_closed_standard_error_do_not_go_to_standard_output(here):
    done = shell(here, "2>&-", "predict", "saved", "data.jsonl", "--to", "jsonl")
    assert (done.code, done.err) == (0, "")
    assert len([json.loads(line) for line in done.out.splitlines()]) == 30  # and no note on how the file was read
    assert shell(here, "2>&-", "info", "nowhere") == Result(1, "", "")
    assert shell(here, "2>&-", "info") == Result(2, "", "")


@pytest.mark.parametrize("redirection", ["<&- 2>&-", "<&- >&- 2>&-"])
def test_no_file_gets_the_number_of_a_closed_stream(here, redirection):
    done = shell(here, redirection, "embed", "model", "a b", "-o", "v.npz")
    assert done.code == (1 if ">&- 2" in redirection else 0)
    if not done.code:
        with np.load(here / "v.npz") as found:
            assert found["vectors"].shape[0] == 2


def test_standard_input_that_is_closed_is_an_error(here):
    done = shell(here, "<&-", "embed", "model", "-")
    assert done.code == 1 and "standard input is closed" in done.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", [("--version",), ("embed", "model", "a b")])
def test_a_full_disk_behind_standard_output_is_an_error(here, command):
    done = shell(here, ">/dev/full", *command)
    assert done.code == 1 and "No space left on device" in done.err


def test_a_reader_that_has_seen_enough_is_no_error_message(here):
    command = f'"{sys.executable}" -m bilmo predict saved data.jsonl --quiet | head -n 1'
    done = subprocess.run(["/bin/sh", "-c", command], cwd=here, capture_output=True, check=False)
    assert done.stderr == b"" and done.stdout.count(b"\n") == 1


# File names that are not UTF-8


@pytest.mark.parametrize("ending", [".npy", ".npz", ".h5", ".jsonl", ".jsonl.gz", ".parquet"])
def test_an_output_whose_name_is_not_utf8_is_written(here, ending):
    name = os.fsdecode(b"\xff" + ending.encode())
    for option in ([], ["--overwrite"]):
        done = program(here, "embed", "model", "a b", "-o", name, *option)
        assert done.code == 0, done.err
        assert done.out.startswith(rf"\udcff{ending}: 1 sentences")
        assert (here / name).stat().st_size > 0
        (here / os.fsdecode(b"\xff.tokens.jsonl")).unlink(missing_ok=True)


@pytest.mark.parametrize(
    "command",
    [("word-cache", "model", "data.jsonl", "-o"), ("convert", "model"), ("predict", "saved", "data.jsonl", "-o")],
)
def test_other_outputs_whose_names_are_not_utf8_are_written(here, command):
    name = os.fsdecode(b"\xff")
    done = program(here, *command, name)
    assert done.code == 0, done.err
    assert done.out.startswith(r"\udcff: ") and (here / name).exists()


@pytest.mark.parametrize("command", [("train", "data.jsonl"), ("fit", "classify", "model", "--train", "data.jsonl")])
def test_a_run_in_a_folder_whose_name_is_not_utf8_is_refused(here, command):
    name = os.fsdecode(b"\xff")
    done = program(here, *command, "-o", name)
    assert (done.code, done.out) == (1, "")
    assert r"bilmo: \udcff: the name is not UTF-8" in done.err and not (here / name).exists()


def test_inputs_whose_names_are_not_utf8_are_read(here):
    name = os.fsdecode(b"\xff.txt")
    (here / name).write_text("a b\n")
    for command in (("embed", "model", name, "-o", "v.npz"), ("word-cache", "model", name, "-o", "words")):
        assert program(here, *command).code == 0
    assert program(here, "evaluate", "model", name).err.count("\n") == 1

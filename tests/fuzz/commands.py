"""Every command with random options: it works, or says what is wrong; and its inputs stay as they are."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer
from hypothesis import strategies as st

from bilmo.cli.app import app
from bilmo.embed.load import load
from bilmo.embed.loaded import settled
from bilmo.formats import open as layouts
from bilmo.store import model_folder
from bilmo.tasks import folder as task_folders
from bilmo.tasks.classify.classifier import Classifier
from bilmo.tasks.tag.tagger import Tagger
from fuzz import damage
from fuzz.forks import Fork
from fuzz.target import REFUSED, SAME, Box, Failure, Target, weighted
from small_runs import write_text

import old_models
import task_data
from task_data import made

INPUTS = (
    *("model", "old", "model.zip", "classifier", "tagger", "text.txt", "texts", "data.jsonl", "reviews.tsv", "a.csv"),
    *("tags.conll", "glove.txt", "recipe.toml", "words.txt", "v.npy", "v.tokens.jsonl", "link.txt", "empty"),
)
OUTPUTS = (
    *("new", "new.npy", "new.h5", "new.npz", "new.jsonl", "new.jsonl.gz", "new.parquet", "new.tsv", "new.csv", "v.npy"),
    *(
        "text.txt",
        "data.jsonl",
        "model",
        "missing/new.npy",
        "texts/new.npy",
        "\udcff.npy",
        "x" * 300 + ".npy",
        "link.npy",
    ),
)
GOOD = {
    **dict.fromkeys(("model", "old"), ("model", "old", "model.zip")),
    **dict.fromkeys(("texts", "inputs"), ("text.txt", "texts", "data.jsonl", "The cat sat.", "-")),
    **dict.fromkeys(("train", "dev", "test", "input"), ("reviews.tsv", "a.csv", "tags.conll", "data.jsonl")),
    "saved": ("classifier", "tagger"),
    "recipe": ("recipe.toml",),
    "vectors": ("glove.txt", "scratch"),
    "lang": ("auto", "spaces", "en", "zh", "west"),
    "form": ("auto", "tab", "csv", "jsonl", "conll"),
    "mix": ("mean", "all", "top", "0,1", "weighted"),
    "field": ("text",),
}
"""Values that often work, by the name of the option or argument."""
ODD = (
    "",
    ".",
    "..",
    "/",
    "-",
    "missing",
    "../outside/secret.txt",
    "/dev/null",
    "a b.",
    "\udcff",
    "x" * 300,
    "--",
    "漢字",
)
NUMBERS = (
    "1",
    "2",
    "3",
    "5",
    "8",
    "0",
    "-1",
    "1000000000",
    "2147483648",
    "9223372036854775807",
    "1" + "0" * 18,
    "9" * 5000,
    "x",
)
FRACTIONS = ("0", "0.5", "1", "-1", "nan", "inf", "1e308", "1e-308", "x", "")
LENGTHS = ("1", "1", "2", "0", "-1", "nan", "x")
"""For epochs, minutes and seeds: other numbers are valid and take long."""
WORDS = (
    *(
        "auto",
        "spaces",
        "en",
        "zh",
        "west",
        "mean",
        "all",
        "top",
        "concat",
        "0,1",
        "9",
        "text",
        "label",
        "weighted",
        "",
    ),
    *(
        "lstm",
        "gru",
        "chars",
        "table",
        "chars+table",
        "vectors:glove.txt",
        "scratch",
        "glove.txt",
        "csv",
        "jsonl",
        "tab",
    ),
    *(
        "tiny",
        "recipe.toml",
        "cpu",
        "cuda:9",
        "input",
        "both",
        "none",
        "linear",
        "cat",
        "\udcff",
        "x" * 3000,
        "1e9",
        "-",
    ),
)
STDIN = (b"", b"The cat sat.\n\nHello", b"pos\tgood\nneg\tbad\n", b"\xff\xfe", b"\0" * 10)
LONG = {"epochs", "seeds"}
"""Options whose defaults take long; they are always given."""
ENDLESS = {"serve"}
"""Commands that run until they are stopped; fuzz/server.py tries the server."""
SKIPPED = {"help", "version", "verbose"}
"""`--verbose` shows a traceback on purpose."""


def commands() -> dict[str, Any]:
    """Every command that can be run, by its words."""

    def walk(prefix: str, command: Any) -> dict[str, Any]:
        if not hasattr(command, "list_commands"):
            return {prefix.strip(): command}
        context = command.context_class(command, info_name=prefix.strip())
        words = [word for word in command.list_commands(context) if word not in ENDLESS]
        return {
            name: one
            for word in words
            for name, one in walk(f"{prefix} {word}", command.get_command(context, word)).items()
        }

    return walk("", typer.main.get_command(app))


def values(parameter: Any) -> st.SearchStrategy[str]:
    """Values for an option or an argument: most of them good ones, some of the right kind, a few of any kind."""
    if parameter.name in ("epochs", "minutes", "seeds"):
        return st.sampled_from(LENGTHS)
    kind = parameter.type_descriptor.annotation
    right: tuple[str, ...] = {int: NUMBERS, float: FRACTIONS}.get(kind, WORDS)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        right = tuple(kind)
    elif parameter.name in ("output", "new"):
        right = OUTPUTS
    elif kind is Path or parameter.param_type_name == "argument":
        right = INPUTS
    good = GOOD.get(parameter.name, right)
    odd = st.sampled_from((*ODD, *NUMBERS[:3]))
    return weighted((20, st.sampled_from(good)), (2, st.sampled_from(right)), (1, odd))


class Commands(Target):
    """Random commands in a folder with a few of everything."""

    name, share, chunk = "commands", 15, 40

    def prepare(self, box: Box) -> None:
        folder = box.case
        old_models.write_checkpoint(folder / "checkpoint")
        model_folder.write(settled(layouts.read(folder / "checkpoint")), folder / "model")
        damage.write(folder, {f"model/{name}": content for name, content in damage.read(folder / "model").items()})
        old_models.write_hdf5(folder / "old")
        old_models.zipped(folder / "model", folder / "model.zip")
        model_folder.write(made(0), folder / "bilm")
        elmo = load(folder / "bilm")
        small: dict[str, Any] = {"hidden": 4, "epochs": 1}
        for name, kind, data in (
            ("classifier", Classifier, task_data.texts(20)),
            ("tagger", Tagger, task_data.sentences(20)),
        ):
            task_folders.save(kind(elmo, **small).fit(*data), folder / name, model=str(folder / "bilm"))
        write_text(folder, lines=30)
        for name, text in {
            "texts/one.txt": "The cat sat.\n\nA dog.\n",
            "data.jsonl": '{"text": "The cat", "label": "pos"}\n{"text": ["a", "b"], "label": "neg"}\n' * 3,
            "reviews.tsv": "pos\tgood film\nneg\tbad film\n" * 8,
            "a.csv": 'label,text\npos,"good, very good"\nneg,bad\n' + "pos,good\nneg,bad\n" * 6,
            "tags.conll": "Anna B-PER\nLee I-PER\nsaw O\n\nOslo B-LOC\n\n" * 8,
            "glove.txt": "the 0.1 0.2 0.3\ncat 0.3 0.1 0.2\n",
            "words.txt": "the cat\nsat\n",
            "v.npy": "somebody's own file",
            "v.tokens.jsonl": "somebody's own file",
        }.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        self.files = damage.read(folder) | {
            "link.txt": ("link", "text.txt"),
            "link.npy": ("link", "../outside/secret.txt"),
        }
        self.known = commands()

    def cases(self) -> st.SearchStrategy[Any]:
        return st.sampled_from(sorted(self.known)).flatmap(self._lines)

    def _lines(self, name: str) -> st.SearchStrategy[Any]:
        """Command lines of one command: all that is required, and some of the options."""
        parts: list[st.SearchStrategy[list[str]]] = [st.just(name.split())]
        for parameter in self.known[name].params:
            if parameter.name in SKIPPED:
                continue
            if parameter.param_type_name == "argument":
                number = 3 if parameter.nargs == -1 else 1
                parts.append(st.lists(values(parameter), min_size=1, max_size=number))
                continue
            flag = getattr(parameter, "is_flag", False)
            given: st.SearchStrategy[Any] = st.just(parameter.opts[:1])
            if not flag:
                given = st.tuples(st.just(parameter.opts[0]), values(parameter)).map(list)
            if parameter.name in LONG:
                parts.append(given)
                continue
            often = parameter.required or parameter.name in ("output", "recipe", "epochs")
            parts.append(weighted((15, given), (1, st.just([]))) if often else weighted((1, given), (9, st.just([]))))
        line = st.tuples(*parts).map(lambda some: [word for part in some for word in part])
        return st.fixed_dictionaries({"line": line, "stdin": st.integers(0, len(STDIN) - 1)})

    def check(self, box: Box, case: Any) -> str:
        damage.write(box.case, self.files)
        (box.case / "empty").mkdir()
        line = [word.replace("\0", "") for word in case["line"]]
        ended = Fork(box, line, stdin=STDIN[case["stdin"]]).end()
        if ended.code not in (0, 1, 2):
            raise Failure(f"exit code {ended.code}: {ended.err[-500:]}")
        if "Traceback (most recent" in ended.err:
            raise Failure(f"traceback: {ended.err[-1500:]}")
        if ended.code and not ended.err.strip():
            raise Failure("it fails without a message")
        self._check_inputs(box.case, line)
        if left := [path.name for path in box.case.rglob("*.partial")]:
            raise Failure(f"left behind: {left}")
        return SAME if ended.code == 0 else REFUSED

    def _check_inputs(self, folder: Path, line: list[str]) -> None:
        """Only an output that is not also an input may replace a file."""
        now = damage.read(folder)
        for name, content in self.files.items():
            wanted = [n for n, word in enumerate(line) if os.path.normpath(word) == name]
            is_output = len(wanted) == 1 and wanted[0] and line[wanted[0] - 1] in ("-o", "--output")
            if isinstance(content, bytes) and now.get(name) != content and not is_output:
                raise Failure(f"{'changed' if name in now else 'removed'}: a file that is not the output: {name}")

"""Every command and every example in README and docs is run, in a folder with the files that they speak of."""

import random
import re
import shlex
from pathlib import Path

import pytest
import torch

import bilmo
from bilmo.formats import open as layouts
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.store import model_folder as folder
from bilmo.store.bundle import Bundle
from program import program

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, language):
    return [body for kind, body in FENCE.findall(page.read_text(encoding="utf-8")) if kind == language]


def commands(page):
    return [line for block in blocks(page, "sh") for line in block.splitlines() if line.strip()]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder with what the pages take for granted: `old-model`, `model`, `sentences.txt`, `text.txt`, task data."""
    torch.manual_seed(0)
    config = bilmo.BiLMConfig(
        words=WordsConfig(chars=CharsConfig(width=4, filters=((1, 8), (2, 16)), highways=1)),
        cell=CellConfig(cells=24),
        width=8,
    )
    bundle = Bundle(config, bilmo.BiLM(config).state_dict(), layout="made for a test")
    layouts.write(bundle, tmp_path / "old-model", "allennlp")
    folder.write(bundle, tmp_path / "model")
    (tmp_path / "sentences.txt").write_text("The cat sat .\n\nHello world\n", encoding="utf-8")
    chosen = random.Random(1)
    lines = (" ".join(chosen.choices(["the", "cat", "dog", "saw", "a", "mat"], k=8)) + " ." for _ in range(60))
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    rows = ("good\tthe cat saw a dog .\n", "bad\ta dog sat on the mat .\n")
    (tmp_path / "reviews.tsv").write_text("".join(f"{row[:-1]} {k}\n" for k in range(12) for row in rows))
    sentences = "Anna\tB-PER\nLee\tI-PER\nsaw\tO\nOslo\tB-LOC\n\n", "the\tO\ncat\tO\nsat\tO\n\n"
    (tmp_path / "entities.conll").write_text("".join(f"{k}\tO\n{s}" for k in range(9) for s in sentences))
    (tmp_path / "glove.txt").write_text("the 0.1 0.2 0.3\ncat 0.3 0.1 0.2\n")
    monkeypatch.setenv("BILMO_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_pages_are_found_and_show_something():
    assert {"README.md", "README.zh.md", "old-models.md"} <= {page.name for page in PAGES}
    assert sum(len(commands(page)) for page in PAGES) > 10


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_examples_run(page, workplace):
    names = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)
    assert "elmo" in names


@pytest.mark.parametrize("page", [p for p in PAGES if commands(p)], ids=lambda p: p.name)
def test_commands_run(page, workplace):
    made = {words[3] for line in commands(page) if (words := shlex.split(line))[:2] == ["bilmo", "convert"]}
    if "model" in made:  # the page makes it itself
        (workplace / "model").rename(workplace / "other")
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    landing = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for line in commands(page):
        name, *rest = shlex.split(line)
        if name == "make":
            assert rest[0] in targets
        elif name == "pip":
            assert line in landing
        else:
            assert name == "bilmo", f"{page.name} shows a command that nobody runs: {line}"
            done = program(workplace, *rest)
            assert done.code == 0, f"{line}\n{done.err}"


def test_what_lands_runs_the_two_commands_of_a_newcomer():
    landing = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "make test" in landing and "make demo" in landing


def test_both_readmes_show_the_same_commands():
    assert commands(ROOT / "README.md") == commands(ROOT / "README.zh.md")

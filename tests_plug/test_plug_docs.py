"""The blocks with a title in the documentation are run here, with the libraries that their titles name."""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch

import bilmo
from bilmo.formats import open as layouts
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.store import model_folder
from bilmo.store.bundle import Bundle
from program import program

ROOT = Path(__file__).parents[1]
TITLED = re.compile(r'^```(python|sh) title="([^"\n]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
BEFORE = "Before: "
"""Code for an old system, which is shown beside the new code and only has to be valid."""
ELSEWHERE = {"flair", "flair.md", "openai", "ray", "torchrun"}
"""A library with an environment of its own, the page whose blocks all need it, and what needs a server or a cluster."""
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if TITLED.search(page.read_text(encoding="utf-8"))
]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder with the files that the pages name: `model`, `old-model` and `sentences.txt`."""
    torch.manual_seed(0)
    config = bilmo.BiLMConfig(
        words=WordsConfig(chars=CharsConfig(width=4, filters=((1, 8), (2, 16)), highways=1)),
        cell=CellConfig(cells=24),
        width=8,
    )
    bundle = Bundle(config, bilmo.BiLM(config).state_dict(), layout="made for a test")
    layouts.write(bundle, tmp_path / "old-model", "allennlp")
    model_folder.write(bundle, tmp_path / "model")
    (tmp_path / "sentences.txt").write_text("The cat sat .\nHello world\n", encoding="utf-8")
    (tmp_path / "novel.txt").write_text("The cat saw the dog .\nA dog saw a cat .\n" * 4, encoding="utf-8")
    for name, kept in (("checkpoint", "bilmtf"), ("zhs.model", "manylangs")):
        shutil.copytree(ROOT / "tests" / "parity" / kept, tmp_path / name)
    (tmp_path / "句子.txt").write_text("猫 看见 狗 。\n", encoding="utf-8")
    (tmp_path / "小说.txt").write_text("".join(f"猫 看见 第 {k} 只 狗 。\n" for k in range(120)), encoding="utf-8")
    (tmp_path / "text.txt").write_text("".join(f"The cat saw dog {k} .\n" for k in range(120)), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_pages_are_found():
    assert {"libraries.md", "bilm-tf.md", "simple-elmo.md"} <= {page.name for page in PAGES}
    assert len([page for page in PAGES if page.parent.name == "coming-from"]) == 7


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run(page, workplace):
    names: dict[str, object] = {}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for language, title, body in TITLED.findall(page.read_text(encoding="utf-8")):
        if title.startswith(BEFORE):
            assert language == "sh" or compile(body, f"{page.name}: {title}", "exec")
            continue
        if {title, page.name} & ELSEWHERE:
            continue
        if language == "python":
            exec(compile(body, f"{page.name}: {title}", "exec"), names)
            continue
        for line in body.splitlines():
            first, *rest = shlex.split(line)
            if first == "pip" and title == "without torch":
                assert f"$(PIP_LIGHT) {' '.join(rest[1:])}" in makefile, line
            elif first == "pip":
                named = re.fullmatch(r"pip install '\.\[([\w,-]+)\]'", line)
                assert named and set(named[1].split(",")) <= extras.keys(), line
            elif first == "bilmo":
                done = program(workplace, *rest)
                assert done.code == 0, f"{line}\n{done.err}"
            else:
                assert first == "python", line
                subprocess.run([sys.executable, *rest], cwd=workplace, check=True)

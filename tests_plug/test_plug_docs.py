"""The blocks with a title in the documentation are run here, with the libraries that their titles name."""

import re
import shlex
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
ELSEWHERE = {"flair", "ray"}
"""Libraries with an environment of their own, or whose start is slow: test_ray_plug.py runs Ray once for all its tests."""
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
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_pages_are_found():
    assert "libraries.md" in {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run(page, workplace):
    names: dict[str, object] = {}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for language, title, body in TITLED.findall(page.read_text(encoding="utf-8")):
        if title in ELSEWHERE:
            continue
        if language == "python":
            exec(compile(body, f"{page.name}: {title}", "exec"), names)
            continue
        for line in body.splitlines():
            first, *rest = shlex.split(line)
            if first == "pip":
                named = re.fullmatch(r"pip install '\.\[([\w,-]+)\]'", line)
                assert named and set(named[1].split(",")) <= extras.keys(), line
            elif first == "bilmo":
                done = program(workplace, *rest)
                assert done.code == 0, f"{line}\n{done.err}"
            else:
                assert first == "python", line
                subprocess.run([sys.executable, *rest], cwd=workplace, check=True)

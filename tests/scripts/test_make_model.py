"""The scripts that make the models in the box, on a tiny text."""

from __future__ import annotations

import importlib.util
import json
import lzma
import sys
from pathlib import Path
from types import ModuleType

import pytest

import bilmo
from small_runs import threads, write_text

SCRIPTS = Path(__file__).parents[2] / "scripts"


def script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A script as a module; what it adds to the search path is removed afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_a_model_is_trained_evaluated_and_documented(tmp_path, monkeypatch, capsys):
    script = script_for_tiny_models(tmp_path, monkeypatch)
    write_text(tmp_path)
    for part, lines in (("text", 120), ("unseen", 30)):
        (tmp_path / part).mkdir()
        write_text(tmp_path / part, lines, name="novels.txt")
        (tmp_path / part / "recipe.toml").unlink()
    with threads(1):
        script.main("en", tmp_path)
    card = (tmp_path / "box" / "en" / "README.md").read_text(encoding="utf-8")
    page = (tmp_path / "results" / "en.md").read_text(encoding="utf-8")
    for part in ("## Evaluation on unseen text", "| perplexity on unseen text | novels ", "| novels | "):
        assert part in card and part in page
    assert "## Limits" in card and "## Nearest words" in page
    assert bilmo.load(tmp_path / "box" / "en").embed("the cat").vectors.shape == (2, 16)
    assert "step 12" in capsys.readouterr().out


def script_for_tiny_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = script("make_model", monkeypatch)
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(module, "BENCHMARKS", tmp_path)
    monkeypatch.setattr(module, "BANDS", ((1, 6), (6, 11)))
    monkeypatch.setattr(module, "DRAWN", 2)
    monkeypatch.setattr(
        module.recipes,
        "read",
        lambda _, *changes, real=module.recipes.read: real(str(tmp_path / "recipe.toml"), *changes),
    )
    return module


def test_word_vectors_are_read_from_the_folder_and_named_without_it(tmp_path, monkeypatch):
    script = script_for_tiny_models(tmp_path, monkeypatch)
    write_text(tmp_path)
    recipe = (tmp_path / "recipe.toml").read_text(encoding="utf-8")
    recipe = recipe.replace("[network]", '[network]\nwords = "chars+vectors:given.txt"')
    (tmp_path / "recipe.toml").write_text(recipe, encoding="utf-8")
    with pytest.raises(SystemExit, match=r"given\.txt.*make_text\.py en"):
        script.recipe_of("en", tmp_path)
    (tmp_path / "given.txt").write_text("the 1 2\ncat 3 4\n", encoding="utf-8")
    for part, lines in (("text", 120), ("unseen", 30)):
        (tmp_path / part).mkdir()
        write_text(tmp_path / part, lines, name="novels.txt")
        (tmp_path / part / "recipe.toml").unlink()
    with threads(1):
        script.main("en", tmp_path)
    card = (tmp_path / "box" / "en" / "README.md").read_text(encoding="utf-8")
    assert 'words = "chars+vectors:given.txt"' in card and str(tmp_path) not in card


def test_a_folder_without_text_is_refused(tmp_path, monkeypatch):
    with pytest.raises(SystemExit, match=r"make_text\.py en"):
        script("make_model", monkeypatch).main("en", tmp_path)


def test_text_is_prepared_and_documents_are_held_out(tmp_path, monkeypatch, capsys):
    module = script("make_text", monkeypatch)
    novels = [[f"document {k} speaks of many things in a line of its own"] for k in range(200)]
    test_set = "the test set of a task has these eleven words in a row"
    news = [["other news of the day"], [f"and here {test_set} stand"]]
    monkeypatch.setattr(module, "OLDER", {"en": ("novels",)})
    monkeypatch.setattr(module, "NEWER", {"en": ("news",)})
    monkeypatch.setattr(module, "documents", lambda name: iter(novels if name == "novels" else news))
    monkeypatch.setattr(module, "test_texts", lambda language: iter([test_set]))
    monkeypatch.setattr(module, "DATA", tmp_path / "data")
    packed = tmp_path / "data" / "vectors" / f"{module.VECTORS['en']}.xz"
    packed.parent.mkdir(parents=True)
    packed.write_bytes(lzma.compress(b"the 1 2\n"))
    module.main("en", tmp_path)
    assert (tmp_path / module.VECTORS["en"]).read_bytes() == b"the 1 2\n"
    counts = json.loads((tmp_path / "text.json").read_text(encoding="utf-8"))
    assert counts["novels"]["held_out"] > 0 and counts["novels"]["kept"] + counts["novels"]["held_out"] == 200
    assert counts["news"]["dropped"] == 1
    kept, unseen = (
        (tmp_path / part / "novels.txt").read_text(encoding="utf-8").splitlines() for part in ("text", "unseen")
    )
    assert len(kept) == counts["novels"]["kept"] and not set(kept) & set(unseen)
    assert (tmp_path / "text" / "news.txt").read_text(encoding="utf-8") == "other news of the day\n"

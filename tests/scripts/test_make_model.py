"""The scripts that make the models in the box, on a tiny text."""

from __future__ import annotations

import importlib.util
import json
import lzma
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import bilmo
import small_runs
from bilmo.embed.loaded import LoadedModel
from bilmo.store.card import fact_in
from bilmo.training.corpus import Corpus
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
    monkeypatch.setattr(script, "SECOND", {})
    with threads(1):
        script.main("en", folder_with_text(tmp_path, "novels"))
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
        lambda name, *changes, real=module.recipes.read: real(
            name if name.endswith(".toml") else str(tmp_path / "recipe.toml"), *changes
        ),
    )
    return module


def test_a_second_stage_makes_the_model_larger_and_trains_it_on_all_texts(tmp_path, monkeypatch, capsys):
    script = script_for_tiny_models(tmp_path, monkeypatch)
    write_text(tmp_path)
    recipe = (tmp_path / "recipe.toml").read_text(encoding="utf-8")
    second = recipe.replace("[network]", '[network]\nwords = "chars+vectors:given.txt"').replace(
        "width = 8", "width = 9"
    )
    (tmp_path / "second.toml").write_text(second, encoding="utf-8")
    monkeypatch.setattr(script, "SECOND", {"en": tmp_path / "second.toml"})
    monkeypatch.setattr(script, "OLDER", {"en": ("novels",)})
    with pytest.raises(SystemExit, match=r"given\.txt.*make_text\.py en"):
        script.main("en", folder_with_text(tmp_path, "novels", "news"))
    (tmp_path / "given.txt").write_text("the 1 2\ncat 3 4\n", encoding="utf-8")
    with threads(1):
        script.main("en", tmp_path)
    printed = capsys.readouterr().out
    assert "first, step 12" in printed and "model, step 12" in printed
    card = (tmp_path / "box" / "en" / "README.md").read_text(encoding="utf-8")
    assert str(tmp_path) not in card and "2 wide, given, frozen" in card
    assert fact_in(card, "text") == "news.txt, novels.txt"
    assert bilmo.load(tmp_path / "box" / "en").embed("the cat").vectors.shape == (2, 18)


def folder_with_text(folder: Path, *kinds: str) -> Path:
    """The folder that make_text.py prepares, with tiny texts."""
    for part, lines in (("text", 120), ("unseen", 30)):
        (folder / part).mkdir()
        for kind in kinds:
            write_text(folder / part, lines, name=f"{kind}.txt")
        (folder / part / "recipe.toml").unlink()
    return folder


def test_a_larger_model_gives_the_same_vectors_and_probabilities(tmp_path, monkeypatch):
    grow = script("grow_model", monkeypatch).grow
    write_text(tmp_path)
    small = small_runs.loop(tmp_path, vocab_size=9).bundle()
    assert small.start is not None
    (tmp_path / "given.txt").write_text("the 1 2\ncat 3 4\n", encoding="utf-8")
    vectors = f"chars+vectors:{tmp_path / 'given.txt'}"
    recipe = small_runs.recipe(tmp_path, words=vectors, width=9, vocab_size=11)
    corpus = Corpus(tmp_path / "corpus")
    large = grow(small, recipe, corpus)
    assert large.vocab is not None and len(large.vocab) == 11 and large.config.width == 9
    old, new = LoadedModel(small), LoadedModel(large)
    sentences = [["the", "cat", "sat", "."], ["字", "unseen"], []]
    for before, after in zip(old.layers(sentences), new.layers(sentences), strict=True):
        for direction in (0, 1):
            half = after[..., 9 * direction : 9 * direction + 8]
            assert np.allclose(half, before[..., 8 * direction : 8 * direction + 8], atol=1e-6)
    before, after = (np.exp(model.log_probs_at(["the", "cat"], 1)) for model in (old, new))
    kept = [word for word in old.bundle.vocab.words if word != "<UNK>"]
    assert len(kept) == 8
    assert np.allclose(after[:, large.vocab.ids(kept)], before[:, small.vocab.ids(kept)], atol=1e-6)
    unknown = [large.vocab.unknown, *range(9, 11)]
    assert np.allclose(after[:, unknown].sum(axis=1), before[:, small.vocab.unknown], atol=1e-6)


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

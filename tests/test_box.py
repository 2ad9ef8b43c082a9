"""The included models, and the demo that shows them."""

from __future__ import annotations

import json
import re
import runpy
import tomllib
from pathlib import Path

import numpy as np
import pytest

import bilmo
from bilmo.store.card import fact_in
from bilmo.store.installed import installed
from bilmo.training import recipe as recipes
from program import program, started

ROOT = Path(__file__).parents[1]
MOST = {"en": 50e6, "zh": 10e6}
"""Largest size of a model folder, in bytes."""
RECIPES = {"en": str(ROOT / "scripts" / "en_second_stage.toml"), "zh": "zh"}
"""Of the last stage of training."""
EXPECTED = {
    "en": {"seven": {"six", "eight", "five", "nine", "ten"}, "quickly": {"slowly", "rapidly"}, "London": {"Paris"}},
    "zh": {"宝玉": {"黛玉", "宝钗"}, "三": {"二", "四", "五"}},
}


def test_both_models_are_installed():
    assert installed().keys() == MOST.keys()


@pytest.mark.parametrize("name", MOST)
def test_a_model_is_small_and_gives_a_sentence_the_same_vectors_in_any_batch(name):
    assert sum(file.stat().st_size for file in installed()[name].iterdir()) <= MOST[name]
    elmo = bilmo.load(name)
    sentence = ["宝玉", "He", "sat", "."]
    alone, first, _ = [*elmo.embed([sentence]), *elmo.embed([sentence, ["?"]])]
    assert np.isfinite(alone).all() and np.allclose(alone, first, atol=1e-5)


@pytest.mark.parametrize("name", MOST)
def test_a_model_card_has_text_recipe_evaluation_and_limits(name):
    card = (installed()[name] / "README.md").read_text(encoding="utf-8")
    assert "unknown" not in (fact_in(card, "trained on"), fact_in(card, "perplexity on unseen text"))
    assert "## Evaluation on unseen text" in card and "## Limits" in card
    shown = tomllib.loads(card.split("```toml\n")[1].split("```")[0])
    recipe = recipes.read(RECIPES[name])
    del shown["train"]["head_first"]  # without effect, because no stage began without a softmax
    assert shown["text"]["lang"] == name and len(shown["train"]) >= 20
    assert shown["train"].items() <= vars(recipe.train).items()
    assert (installed()[name] / "curve.svg").exists()


@pytest.mark.parametrize("name", MOST)
def test_a_model_beats_a_5_gram_model_on_every_unseen_text(name):
    """As its result page says, which was made from text that is not part of the repository."""
    page = (ROOT / "benchmarks" / "results" / f"{name}.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \S+ \| [\d,]+ \| [\d.]+% \| \*\*([\d.]+)\*\* \| [\d.]+ \| ([\d.]+) \|$", page, re.MULTILINE)
    assert len(rows) >= 2
    assert all(float(ours) < 0.9 * float(plain) for ours, plain in rows)


@pytest.mark.parametrize("name", MOST)
def test_nearest_words_make_sense(name):
    elmo = bilmo.load(name)
    for word, expected in EXPECTED[name].items():
        assert expected & {other for other, _ in elmo.most_similar(word, topn=8)}, word


def test_the_first_commands_of_readme(tmp_path):
    listed = program(tmp_path, "models")
    assert listed.code == 0 and [line.split()[0] for line in listed.out.splitlines()] == ["name", "en", "zh"]
    shown, _ = started(tmp_path, "embed", "en", "He sat on the bank.").communicate()
    assert json.loads(shown)["tokens"] == ["He", "sat", "on", "the", "bank", "."]
    near = program(tmp_path, "similar", "zh", "宝玉")
    assert near.code == 0 and "黛玉" in near.out


def test_the_demo_writes_a_page_that_needs_no_network(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "demo.py"), run_name="__main__")
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    for part in ("One word, two senses", "<mark>bank</mark>", "宝玉", "on held-out text", "bilmo train YOUR_TEXT.txt"):
        assert part in page
    links = set(re.findall(r"https?://[^\"' <]+", page))
    assert links <= {"http://www.w3.org/2000/svg"}, links  # a name, not an address
    printed = capfd.readouterr().out
    assert "report.html" in printed and printed.rstrip().splitlines()[-1].strip() == ".venv/bin/bilmo serve"
    steps = [json.loads(line) for line in (tmp_path / "demo" / "model" / "train.jsonl").read_text().splitlines()]
    assert min(step["mean"] for step in steps if "mean" in step) < 3.6

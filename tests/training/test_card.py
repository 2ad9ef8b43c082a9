"""The model card of a run: what it was made of, and a recipe that makes it again."""

import re
from dataclasses import replace

import pytest

from bilmo.formats import open as layouts
from bilmo.training import recipe as recipes
from bilmo.training.card import TrainingSection, toml
from bilmo.training.corpus import Facts
from bilmo.training.events import Evaluation, Progress
from bilmo.training.recipe import SHIPPED, NetworkRecipe, Recipe
from bilmo.training.run import Base, train
from small_runs import log, recipe, write_text

RECIPE_IN_CARD = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def read_back(text, folder):
    (folder / "from-card.toml").write_text(text, encoding="utf-8")
    return recipes.read(str(folder / "from-card.toml"))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run of two texts: its folder, and its settings."""
    folder = tmp_path_factory.mktemp("run")
    texts = [write_text(folder), write_text(folder, lines=20, name="more words.txt")]
    settings = recipe(folder, dropout=0.25, vocab_size=9)
    list(train(texts, folder / "model", settings))
    return folder, settings


def test_a_card_names_the_texts_and_their_size(run):
    folder, _ = run
    card = (folder / "model" / "README.md").read_text(encoding="utf-8")
    assert "| text | text.txt, more words.txt |" in card
    trained, held_out = (int(n) for n in re.findall(r"\| (?:trained on|held out) \| (\d+) words", card))
    words = sum(len((folder / name).read_text(encoding="utf-8").split()) for name in ("text.txt", "more words.txt"))
    assert trained + held_out == words


def test_a_card_has_the_perplexities_of_the_model_beside_it(run):
    folder, _ = run
    card = (folder / "model" / "README.md").read_text(encoding="utf-8")
    best = min(log(folder / "model", "evaluation"), key=lambda entry: entry["mean"])
    for name, value in (("forward", best["forward"]), ("backward", best["backward"])):
        assert f"| held-out perplexity {name} | {value:.2f} |" in card
    assert f"| held-out perplexity, mean | {best['mean']:.2f} |" in card
    assert f"| held-out perplexity of known words | {best['known']:.2f} |" in card
    assert f"| steps | {best['number']} (" in card
    assert "](curve.svg)" in card and (folder / "model" / "curve.svg").exists()


def test_a_card_holds_the_recipe_that_makes_the_same_model(run, tmp_path):
    folder, settings = run
    card = (folder / "model" / "README.md").read_text(encoding="utf-8")
    assert read_back(RECIPE_IN_CARD.search(card)[1], tmp_path) == settings


def test_a_card_has_no_date_so_that_the_same_run_gives_the_same_card(run):
    folder, settings = run
    texts = [folder / "text.txt", folder / "more words.txt"]
    list(train(texts, folder / "again", settings))
    first, second = ((folder / name / "README.md").read_text(encoding="utf-8") for name in ("model", "again"))
    seconds = re.compile(r"^\| time \| .*$", re.MULTILINE)  # the only difference between two runs
    assert seconds.sub("", first) == seconds.sub("", second) != first
    assert not re.search(r"\b20\d\d\b|\d:\d\d", first)


def test_the_card_of_a_fine_tuned_model_names_its_base_and_no_network(run, tmp_path):
    folder, _ = run
    base = Base(layouts.read(folder / "model"), "novels/model", 0)
    text = write_text(tmp_path)
    list(train([text], tmp_path / "new", recipe(tmp_path, epochs=0.5), base))
    card = (tmp_path / "new" / "README.md").read_text(encoding="utf-8")
    assert "| fine-tuned from | novels/model |" in card
    assert "[network]" not in card and "[train]" in card


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_recipe_reads_back_as_it_was(name, tmp_path):
    assert read_back(toml(recipes.read(name)), tmp_path) == recipes.read(name)


@pytest.mark.parametrize("name", ['with "quotes".txt', "C:\\temp\\vectors.txt", "字 and\ttab.txt", "two\nlines"])
def test_any_file_name_reads_back_as_it_was(name, tmp_path):
    given = Recipe(network=NetworkRecipe(words=f"vectors:{name}"))
    assert read_back(toml(given), tmp_path) == given


def test_epochs_are_counted_when_they_are_complete():
    facts = Facts(lang="en", words=5, tokens={"train": 9, "held_out": 2}, sentences={"train": 3, "held_out": 1})
    section = TrainingSection(Recipe(), facts, texts=["a"], base=None)
    evaluation = Evaluation(number=7, forward=2.0, backward=2.0, mean=2.0, known=3.0, words=3, best=True)
    at = Progress(steps=7, epoch=1, step_in_epoch=3)
    for progress, says in [
        (at, "7 (in epoch 2)"),
        (replace(at, step_in_epoch=0), "7 (1 epoch)"),
        (replace(at, step_in_epoch=0, epoch=2), "7 (2 epochs)"),
    ]:
        assert f"| steps | {says} |" in section.markdown(progress, evaluation)

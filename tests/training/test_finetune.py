"""Fine-tuning: evaluated before, the best kept, words added, a softmax made if there is none."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import bilmo
from bilmo.errors import ConfigError
from bilmo.formats import open as layouts
from bilmo.ids.vocab import Vocab
from bilmo.store import checkpoint
from bilmo.training.build import plan_finetuning
from bilmo.training.events import Evaluation, Finished, Progress, Reading, Ready, Step
from bilmo.training.prior import Prior
from bilmo.training.recipe import TextRecipe
from bilmo.training.run import Base, train
from program import program, started
from small_runs import log, recipe, same_bits, weights, write_text

import old_models

NEW = ("zebra", "zebra", "zebra", "yak", "yak", "the", "saw", ".")
"""Words of a text that the base model does not know; the first is the most frequent."""


@pytest.fixture(scope="module", params=["chars", "table"])
def base(request, tmp_path_factory):
    """A model that bilmo trained, with characters or with a word table."""
    place = tmp_path_factory.mktemp(request.param)
    text = write_text(place)
    list(train([text], place / "model", recipe(place, words=request.param)))
    return place / "model"


def tuned(base, text, to, add_words=0, **changes):
    """All events of a run that fine-tunes a model of any layout."""
    given = Base(layouts.read(base), str(base), add_words)
    return list(train([text], to, recipe(text.parent, **changes), given))


def evaluations(events):
    return [event for event in events if isinstance(event, Evaluation)]


def test_perplexity_is_measured_before_and_after_and_the_better_model_is_kept(base, tmp_path):
    text = write_text(tmp_path, words=("the", "cat", "the", "cat", "."))
    events = tuned(base, text, tmp_path / "new", epochs=4)
    before, *after = evaluations(events)
    assert before.number == 0 and before.best
    best = min(after, key=lambda evaluation: evaluation.mean)
    assert best.mean < 0.7 * before.mean
    assert [type(event) for event in events[:2]] == [Reading, Ready] and isinstance(events[-1], Finished)
    assert np.exp(events[-1].progress.best) == pytest.approx(best.mean)
    done = program(tmp_path, "evaluate", "new", "text.txt")
    perplexity = float(done.out.split("mean")[1].split()[0])
    assert perplexity < 0.7 * before.mean


@pytest.mark.parametrize("rate", [0.0, 30.0])
def test_if_nothing_improves_the_model_stays_as_it_was(base, tmp_path, rate):
    text = write_text(tmp_path)
    events = tuned(base, text, tmp_path / "new", rate=rate, evaluate_every=3, patience=2)
    before, *after = evaluations(events)
    assert before.best and after and not any(evaluation.best for evaluation in after)
    if rate:
        assert all(evaluation.mean > before.mean for evaluation in after)
    assert "no improvement in the last 2 evaluations" in events[-1].reason
    assert same_bits(weights(tmp_path / "new"), weights(base))


def test_an_old_model_that_stays_as_it_was_gives_the_same_vectors(tmp_path):
    old_models.write_checkpoint(tmp_path / "old", vocab=(*old_models.MARKS, "the", "cat"))
    text = write_text(tmp_path)
    assert evaluations(tuned(tmp_path / "old", text, tmp_path / "new", rate=0.0))[0].best
    sentences = [["the", "cat"], ["dog"]]
    before, after = (bilmo.load(tmp_path / name).layers(sentences) for name in ("old", "new"))
    for ours, theirs in zip(after, before, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_added_words_get_a_row_and_are_then_predicted(base, tmp_path):
    text = write_text(tmp_path, words=NEW)
    tuned(base, text, tmp_path / "new", add_words=1, epochs=4)
    was, now = layouts.read(base), layouts.read(tmp_path / "new")
    assert now.vocab.words == (*was.vocab.words, "zebra")
    assert len(now.weights["softmax.weight"]) == len(now.weights["softmax.bias"]) == len(now.vocab)
    if was.config.words.table:
        row = now.weights["words.table.weight"][-1]
        assert len(now.weights["words.table.weight"]) == len(now.vocab) == now.config.words.table.rows
        assert not torch.equal(row, now.weights["words.table.weight"][now.vocab.unknown])
    forward, backward = bilmo.load(tmp_path / "new").log_probs([["the", "zebra", "."]])[0]
    assert np.exp(forward[1]) > 0.2 and np.exp(backward[2]) > 0.2  # it is three in eight of the text
    forward, _ = bilmo.load(tmp_path / "new").log_probs([["the", "yak", "."]])[0]
    assert np.exp(forward[1]) > 0.1  # which was not added, and counts as <UNK>


def test_new_rows_start_as_the_unknown_word_and_together_as_likely_as_it(base):
    bundle = layouts.read(base)
    words, counts = [*old_models.MARKS, "zebra", "the", "yak", "gnu", "unseen"], np.array([0, 0, 0, 9, 8, 7, 2, 0])
    shape = plan_finetuning(bundle, TextRecipe(min_count=2), words, counts, add_words=100)
    assert shape.vocab.words == (*bundle.vocab.words, "zebra", "yak", "gnu")  # none that only held-out text has
    made = shape.model(seed=1).state_dict()
    unknown = bundle.vocab.unknown
    for name in ("softmax.weight", "bilm.words.table.weight"):
        if name in made:
            assert torch.equal(made[name][-3:], made[name][unknown].expand(3, -1))
    chance = torch.softmax(made["softmax.bias"].double(), 0)
    assert float(chance[-3:].sum() / chance[unknown]) == pytest.approx(1, rel=1e-5)


def test_a_new_word_beside_given_vectors_starts_as_the_learned_unknown_word(tmp_path):
    text = write_text(tmp_path)
    (tmp_path / "vectors.txt").write_text("the 0.1 0.2\ncat 0.3 0.4\n", encoding="utf-8")
    settings = recipe(tmp_path, words=f"vectors:{tmp_path / 'vectors.txt'}", epochs=1, vocab_size=6)
    list(train([text], tmp_path / "model", settings))
    bundle = layouts.read(tmp_path / "model")
    words, counts = [*old_models.MARKS, "zebra"], np.array([0, 0, 0, 9])
    made = plan_finetuning(bundle, TextRecipe(), words, counts, add_words=1).model(seed=1).state_dict()
    assert torch.equal(made["bilm.words.table.weight"][-1], bundle.weights["words.table.marks"][2])
    assert not torch.equal(bundle.weights["words.table.marks"][2], bundle.weights["words.table.weight"][2])


def headless(kind, folder):
    """A model of an old layout that has no softmax."""
    if kind == "hdf5":
        old_models.write_hdf5(folder)
    else:
        old_models.write_manylangs(folder)
    return layouts.read(folder)


@pytest.mark.parametrize("kind", ["hdf5", "manylangs"])
def test_a_model_without_a_softmax_gets_one_that_is_trained_alone_at_first(kind, tmp_path):
    bundle = headless(kind, tmp_path / "old")
    assert not bundle.has_softmax
    text = write_text(tmp_path)
    settings = recipe(tmp_path, head_first=0.4, save_every=1, epochs=1, rate=0.05)
    path = tmp_path / "new" / "training" / "checkpoint.safetensors"
    done, after = {}, {}
    for event in train([text], tmp_path / "new", settings, Base(bundle, "old", 0)):
        if isinstance(event, Step):
            done[event.number] = event.done
        if path.exists():
            saved = checkpoint.read(path, Progress)
            after[saved.progress.steps] = saved.part("model")
    alone = [number for number in after if done[number] < 0.4]
    assert len(alone) > 2 and len(after) - len(alone) > 2
    for number, model in after.items():
        network = [torch.equal(model[f"bilm.{name}"], value) for name, value in bundle.weights.items()]
        assert all(network) if number in alone else not any(network), number
    assert not torch.equal(after[alone[0]]["softmax.weight"], after[alone[-1]]["softmax.weight"])
    new = layouts.read(tmp_path / "new")
    assert new.has_softmax and len(new.weights["softmax.weight"]) == len(new.vocab)
    if kind == "hdf5":  # it names no rows by words, so the words are those of the text
        assert "dog" in new.vocab
    losses = [entry["loss"] for entry in log(tmp_path / "new", "step")]
    assert losses[-1] < losses[0]


def test_a_run_that_is_stopped_and_resumed_gives_the_same_bits(tmp_path):
    bundle = headless("manylangs", tmp_path / "old")
    text = write_text(tmp_path)
    settings = recipe(tmp_path, head_first=0.5, epochs=1, save_every=2, average=0.5)
    list(train([text], tmp_path / "undisturbed", settings, Base(bundle, "old", 3)))
    for steps in (1, 4, 5, 3):
        events = train([text], tmp_path / "new", settings, Base(layouts.read(tmp_path / "old"), "old", 3))
        for _, _event in zip(range(1 + steps), events, strict=False):
            pass
        events.close()
    *_, last = train([text], tmp_path / "new", settings, Base(bundle, "old", 3))
    assert last.progress.finished
    assert same_bits(weights(tmp_path / "new"), weights(tmp_path / "undisturbed"))
    assert weights(tmp_path / "new")["softmax.bias"].shape == (len(bundle.vocab) + 3,)


@pytest.mark.parametrize("change", ["network", "softmax", "words", "number", "none"])
def test_a_different_model_to_fine_tune_is_refused(base, tmp_path, change):
    text = write_text(tmp_path)
    settings = recipe(tmp_path)
    bundle = layouts.read(base)
    events = train([text], tmp_path / "new", settings, Base(bundle, "model", 2))
    assert [type(next(events)) for _ in range(2)] == [Reading, Ready]
    events.close()
    name = {"network": "forward_stack.0.bias", "softmax": "softmax.bias"}.get(change)
    if name:
        bundle = replace(bundle, weights=bundle.weights | {name: bundle.weights[name] + 1})
    if change == "words":
        bundle = replace(bundle, vocab=Vocab((*bundle.vocab.words[:-1], "other")))
    other = None if change == "none" else Base(bundle, "model", 3 if change == "number" else 2)
    says = {"number": "add_words was 2 and is now 3", "none": "the model to fine-tune: not the same"}
    with pytest.raises(ConfigError, match=says.get(change, "the model to fine-tune: not the same")):
        next(train([text], tmp_path / "new", settings, other))


def test_a_model_of_one_direction_is_refused(tmp_path):
    old_models.write_checkpoint(tmp_path / "old", directions=(0,))
    text = write_text(tmp_path)
    with pytest.raises(ConfigError, match="is forward only"):
        tuned(tmp_path / "old", text, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_old_model_through_the_command_line(tmp_path):
    old_models.write_hdf5(tmp_path / "old")
    write_text(tmp_path)
    command = ("finetune", "old", "text.txt", "-o", "new", "--recipe", "recipe.toml", "--epochs", "3")
    process = started(tmp_path, *command)
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert "training is complete" in out and "held-out perplexity" in err
    assert "head_first = 0.3" in (tmp_path / "new" / "README.md").read_text("utf-8")
    done = program(tmp_path, "evaluate", "new", "text.txt")
    perplexity = float(done.out.split("mean")[1].split()[0])
    assert done.code == 0 and perplexity < 14  # it knew nothing of these words
    again = program(tmp_path, *command)
    assert again.code == 0 and "already complete" in again.out
    with (tmp_path / "recipe.toml").open("a", encoding="utf-8") as file:
        file.write("head_first = 0.7\n")
    assert program(tmp_path, *command[:4], "other", *command[5:7], "--epochs", "0.2").code == 0
    assert "head_first = 0.7" in (tmp_path / "other" / "README.md").read_text("utf-8")


def test_a_model_with_a_softmax_does_not_learn_the_unknown_word_again(base, tmp_path, monkeypatch):
    monkeypatch.setattr(Prior, "targets", lambda *_, **__: pytest.fail("a word was hidden"))
    text = write_text(tmp_path)
    assert isinstance(tuned(base, text, tmp_path / "new", epochs=1)[-1], Finished)

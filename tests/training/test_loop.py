"""Single steps: exploding ones, the order of the text, and the cost of a run."""

import math
from collections import Counter
from itertools import chain, islice

import numpy as np
import pytest
import torch

import bilmo
import bilmo.store.card
import bilmo.training.cost
import bilmo.training.loop
import bilmo.training.run
from bilmo.embed.perplexity import score
from bilmo.errors import BilmoError
from bilmo.store import checkpoint
from bilmo.training.cost import estimate
from bilmo.training.events import Evaluation, Finished, Progress, Step
from bilmo.training.loop import Loop
from bilmo.training.loss import full_loss
from bilmo.training.run import train
from program import program
from small_runs import log, loop, recipe, write_text

COMMAND = ("train", "text.txt", "-o", "model", "--recipe", "recipe.toml")


def copied(run):
    """Everything that a step changes: weights, their average, the state of the optimizer."""
    memory = run._optimizer.state_dict()["state"]
    return [
        *(value.clone() for value in run.model.state_dict().values()),
        *(value.clone() for _, value in sorted(run._average.items())),
        *(memory[key][name].clone() for key in sorted(memory) for name in sorted(memory[key])),
    ]


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


class Exploding:
    """The loss, multiplied by `instead` while that is set."""

    def __init__(self, monkeypatch):
        self.instead = None
        monkeypatch.setattr(bilmo.training.loop, "full_loss", self)

    def __call__(self, softmax, outputs, targets):
        mean, each = full_loss(softmax, outputs, targets)
        return (mean if self.instead is None else mean * self.instead), each


@pytest.mark.parametrize("instead", [1e4, math.nan, math.inf], ids=str)
@pytest.mark.parametrize("context", ["sentences", "stream", "document"])
def test_an_exploding_step_is_skipped_and_reported(tmp_path, monkeypatch, instead, context):
    write_text(tmp_path)
    run = loop(tmp_path, average=0.9, context=context, window=5)
    loss = Exploding(monkeypatch)
    text = run.text(0)
    for number in range(3):
        assert not run.step(text[number], 0.1).skipped
    before = copied(run)
    loss.instead = instead
    bad = run.step(text[3], 0.2)
    assert bad.skipped and run.progress.skipped == 1 and not bad.loss < 10
    assert same(before, copied(run))
    loss.instead = None
    good = run.step(text[4], 0.2)
    assert not good.skipped and good.number == 5 and not same(before, copied(run))
    assert all(torch.isfinite(value).all() for value in copied(run))


def test_documents_are_read_in_the_order_of_the_text_from_another_place_in_each_epoch(tmp_path):
    write_text(tmp_path)
    run = loop(tmp_path, context="document", window=5, batch=5)
    text = run.corpus.text("train")
    sentences = [[*part.tolist(), text.end] for part in np.split(text.ids, text.ends[:-1])]
    rotated = [list(chain(*sentences[first:], *sentences[:first])) for first in range(len(sentences))]
    begins = []
    for epoch in range(4):
        steps = run.text(epoch)
        read = [id for n in range(len(steps)) for id in steps[n].forward.targets[0].tolist()]
        begins.append([first for first, ids in enumerate(rotated) if ids[: len(read)] == read])
    assert all(len(places) == 1 for places in begins) and len({first for (first,) in begins}) > 1


def test_a_new_softmax_starts_with_word_counts_or_flat(tmp_path):
    write_text(tmp_path)
    run = loop(tmp_path, vocab_size=6)
    text = run.corpus.text("train")
    vocab = run.plan.vocab.words
    known = [word if word in vocab else "<UNK>" for word in np.array(run.corpus.words)[text.ids].tolist()]
    counts = Counter([*known, *["<S>", "</S>"] * (len(text.ends) // 2)])
    expected = torch.tensor([counts[word] + 1 for word in vocab]) / (len(known) + len(text.ends) + len(vocab))
    torch.testing.assert_close(run.model.softmax.bias.exp(), expected, rtol=0.01, atol=0)  # an odd sentence is left out
    assert counts["<UNK>"] > 0
    assert not loop(tmp_path, prior="flat").model.softmax.bias.any()


def test_a_step_of_which_only_the_gradient_is_not_a_number_is_skipped(tmp_path):
    write_text(tmp_path)
    run = loop(tmp_path)
    run.step(run.text(0)[0], 0.1)
    before = copied(run)
    handle = run.model.softmax.bias.register_hook(lambda gradient: gradient * math.nan)
    assert run.step(run.text(0)[1], 0.1).skipped and same(before, copied(run))
    handle.remove()


def test_ten_exploding_steps_in_a_row_end_the_run_and_leave_the_last_good_weights(tmp_path, monkeypatch):
    text = write_text(tmp_path)
    loss = Exploding(monkeypatch)
    path = tmp_path / "model" / "training" / "checkpoint.safetensors"
    good = {}
    with pytest.raises(BilmoError, match=r"10 steps in a row exploded, up to step 17 .* Try a lower rate"):
        for event in train([text], tmp_path / "model", recipe(tmp_path, save_every=7)):
            if isinstance(event, Step) and event.number == 7:
                loss.instead = 1e9
            if isinstance(event, Step) and event.number == 8:
                good = checkpoint.read(path, Progress).part("model")
    last = checkpoint.read(path, Progress)
    assert last.progress.steps == 7 and last.progress.skipped == 0  # nothing is saved while steps explode
    assert all(torch.equal(value, good[name]) for name, value in last.part("model").items())
    loss.instead = None
    assert list(train([text], tmp_path / "model", recipe(tmp_path, save_every=7)))[-1].progress.finished


def test_spoiled_weights_are_replaced_by_those_of_the_last_checkpoint(tmp_path, monkeypatch):
    text = write_text(tmp_path)
    loops = []

    class Watched(Loop):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            loops.append(self)

    monkeypatch.setattr(bilmo.training.run, "Loop", Watched)
    skipped = []
    for event in train([text], tmp_path / "model", recipe(tmp_path, save_every=5)):
        if isinstance(event, Step):
            run = loops[0]
            skipped.append(event.skipped)
            if event.number == 5:
                good = copied(run)
            elif event.number == 7:  # an update that should never have been made
                with torch.no_grad():
                    for value in run.model.parameters():
                        value.mul_(1e4)
            elif event.number == 10:
                assert same(copied(run), good)
                break
    assert skipped == [False] * 7 + [True] * 3


def test_the_command_reports_what_exploded_and_stops_with_an_error(tmp_path, monkeypatch):
    write_text(tmp_path)
    calls = []

    def explode(softmax, outputs, targets):
        calls.append(1)
        mean, each = full_loss(softmax, outputs, targets)
        return (mean * math.nan if len(calls) > 2 + 13 else mean), each  # two are tried before the first step

    monkeypatch.setattr(bilmo.training.loop, "full_loss", explode)
    done = program(tmp_path, *COMMAND)
    assert done.code == 1 and "10 steps in a row exploded" in done.err
    assert done.err.count("the loss exploded (nan); the step was skipped") == 9
    assert "NaN" not in (tmp_path / "model" / "train.jsonl").read_text(encoding="utf-8")
    assert [entry["number"] for entry in log(tmp_path / "model", "step") if entry["skipped"]] == list(range(14, 24))
    assert np.isfinite(bilmo.load(tmp_path / "model").embed([["the", "cat"]], mix="mean")[0]).all()


def arrays(step):
    return [step.forward.inputs, step.forward.targets, step.backward.inputs, step.backward.targets, step.lengths]


@pytest.mark.parametrize("context", ["sentences", "stream", "document"])
def test_the_text_of_a_step_depends_only_on_seed_epoch_and_number(tmp_path, context):
    write_text(tmp_path)
    changes = {"context": context, "window": 5}
    one, other = loop(tmp_path, **changes), loop(tmp_path, **changes)
    forwards = [arrays(one.text(1)[number]) for number in range(len(one.text(1)))]
    for number in (0, 1, 2):  # whatever was trained before
        other.step(other.text(0)[number], 0.1)
    torch.manual_seed(99)
    np.random.seed(99)
    text = other.text(1)
    assert len(text) == len(forwards)
    for number in reversed(range(len(text))):
        for ours, theirs in zip(arrays(text[number]), forwards[number], strict=True):
            np.testing.assert_array_equal(ours, theirs)

    def batches(run, epoch):
        text = run.text(epoch)
        return {text[number].forward.inputs.tobytes() for number in range(len(text))}

    # Not only the order differs: batches have other sentences.
    assert batches(one, 0) != batches(one, 1)
    assert batches(one, 0) != batches(loop(tmp_path, **changes, seed=2), 0)


def test_every_word_of_the_training_text_comes_once_per_epoch(tmp_path):
    write_text(tmp_path)
    run = loop(tmp_path)
    ids = run.corpus.text("train").ids
    for epoch in (0, 1):
        text = run.text(epoch)
        seen = [
            reading.targets[row, :length]
            for step in (text[n] for n in range(len(text)))
            for reading in (step.forward, step.backward)
            for row, length in enumerate(step.lengths)
        ]
        words = np.concatenate(seen)
        assert sorted(words[words > 2].tolist()) == sorted([*ids.tolist(), *ids.tolist()])


def test_a_trial_step_changes_nothing(tmp_path):
    write_text(tmp_path)
    run, other = loop(tmp_path, average=0.5), loop(tmp_path, average=0.5)
    before = copied(run)
    cost = estimate(run)
    assert cost.seconds > 0 and cost.memory > 1_000_000
    assert same(before, copied(run)) and all(p.grad is None for p in run.model.parameters())
    assert run.step(run.text(0)[0], 0.1).loss == other.step(other.text(0)[0], 0.1).loss
    assert same(copied(run), copied(other))


def test_the_time_of_a_run_is_estimated_before_it_starts_and_when_it_is_resumed(tmp_path, monkeypatch):
    text = write_text(tmp_path)
    monkeypatch.setattr(Loop, "try_step", lambda self, text: 60.0)  # one minute per step
    monkeypatch.setattr(bilmo.training.cost, "evaluation_seconds", lambda loop: 0.0)
    done = program(tmp_path, *COMMAND)
    steps = len(log(tmp_path / "model", "step"))
    assert f"time left      about 0:{steps}:00" in done.out and "run            new" in done.out
    events = train([text], tmp_path / "broken", recipe(tmp_path))
    for event in events:
        if isinstance(event, Step) and event.number == 12:
            break
    events.close()
    again = next(train([text], tmp_path / "broken", recipe(tmp_path)))
    assert again.resumed and again.cost.seconds == pytest.approx(60 * (steps - 10))  # the checkpoint of step 10
    _, timed = islice(train([text], tmp_path / "timed", recipe(tmp_path, minutes=3)), 2)
    assert timed.cost.seconds == 180
    monkeypatch.setattr(bilmo.training.cost, "evaluation_seconds", lambda loop: 100.0)
    _, evaluated = islice(train([text], tmp_path / "evaluated", recipe(tmp_path, evaluate_every=steps // 2)), 2)
    assert evaluated.cost.seconds == pytest.approx(60 * steps + 100 * steps / (steps // 2))


def test_an_evaluation_has_the_perplexity_of_known_words(tmp_path):
    write_text(tmp_path)
    run = loop(tmp_path, vocab_size=6)
    words, text = run.corpus.words, run.corpus.text("held_out")
    sentences = [[words[id] for id in ids] for ids in np.split(text.ids, text.ends[:-1])]
    found, expected = run.evaluate(), score(bilmo.Embedder(run.bundle()), sentences)
    assert expected.unknown > 0.3 * expected.words  # so that it matters
    assert found.mean == pytest.approx(expected.perplexity["mean"], rel=1e-4)
    assert found.known == pytest.approx(expected.known["mean"], rel=1e-4)
    assert math.exp(run.progress.best_known) == pytest.approx(found.known)


def test_an_evaluation_counts_as_time_of_the_run(tmp_path):
    write_text(tmp_path)
    run = loop(tmp_path)
    assert run.progress.seconds == 0
    run.evaluate()
    assert run.progress.seconds > 0


def test_epochs_of_unequal_length_have_one_evaluation_each(tmp_path, monkeypatch):
    write_text(tmp_path)
    run = loop(tmp_path, evaluate_every=10**6, epochs=6)
    epochs = [41, 43, 40, 44, 42, 40, 40]

    def step(text, done):
        run.progress.step_in_epoch += 1
        run.progress.steps += 1
        return text

    monkeypatch.setattr(run, "text", lambda epoch: range(epochs[epoch]))
    monkeypatch.setattr(run, "step", step)
    numbers = [0, *(event.number for event in run.events() if isinstance(event, Evaluation))]
    assert len(numbers) in (7, 8) and numbers[-1] == sum(epochs[:6])
    assert all(40 <= gap <= 44 for gap in np.diff(numbers[:-1]))  # the last one ends the run


@pytest.mark.parametrize("words, highways", [("chars", 2), ("chars+table", 2), ("table", 0)])
def test_highways_come_after_the_projection_if_words_have_characters(tmp_path, words, highways):
    write_text(tmp_path)
    run = loop(tmp_path, words=words, highways=0, word_highways=2)
    assert len(run.model.bilm.words.highways) == highways
    run.step(run.text(0)[0], 0.5)
    parts = [p for name, p in run.model.named_parameters() if name.startswith("bilm.words.highways.")]
    assert len(parts) == 4 * highways and all(part.grad.abs().sum() > 0 for part in parts)
    assert ("| word highways | 2 |" in bilmo.store.card.card_of(run.bundle())) == bool(highways)


def test_the_loop_touches_no_file_and_a_checkpoint_of_any_event_resumes_exactly_there(tmp_path):
    """Also of an event right before an evaluation, or of the evaluation itself."""
    write_text(tmp_path)
    settings = {"average": 0.5, "evaluate_every": 4, "epochs": 1, "patience": 3}
    before = sorted(tmp_path.rglob("*"))
    whole = loop(tmp_path, **settings)
    reference = [*before, *(tmp_path / "corpus").rglob("*"), tmp_path / "corpus"]
    expected = [(type(event), event.number) for event in whole.events() if not isinstance(event, Finished)]
    assert sorted(tmp_path.rglob("*")) == sorted(reference)
    found, saved = [], None
    while not found or saved is not None:
        part = loop(tmp_path, **settings)  # one event per process
        if saved is not None:
            checkpoint.write(tmp_path / "saved", saved)
            part.resume(checkpoint.read(tmp_path / "saved", Progress))
        event = next(part.events())
        saved = part.checkpoint()
        if isinstance(event, Finished):
            break
        found.append((type(event), event.number))
    assert found == expected
    assert same(copied(part), copied(whole))


def test_training_leaves_the_random_numbers_of_the_user_alone(tmp_path):
    text = write_text(tmp_path)
    torch.manual_seed(7)
    before = torch.get_rng_state()
    for _ in train([text], tmp_path / "model", recipe(tmp_path, epochs=0.3)):
        assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(torch.get_rng_state(), before)

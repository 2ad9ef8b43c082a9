"""Single steps: those that explode, the order of the text, and what a run will cost."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

import bilmo
import bilmo.store.card
import bilmo.train.loop
from bilmo.errors import BilmoError
from bilmo.train import checkpoint
from bilmo.train.events import Look, Step
from bilmo.train.loop import Loop
from bilmo.train.loss import full_loss
from bilmo.train.run import train
from program import program
from small_runs import log, loop, recipe, write_text

COMMAND = ("train", "text.txt", "-o", "model", "--recipe", "recipe.toml")


def copied(run):
    """Everything that a step changes: weights, their average, the optimiser's memory."""
    memory = run._optimizer.state_dict()["state"]
    return [
        *(value.clone() for value in run.model.state_dict().values()),
        *(value.clone() for value in run._average.values()),
        *(memory[key][name].clone() for key in sorted(memory) for name in sorted(memory[key])),
    ]


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


class Exploding:
    """The loss, which is something else as soon and as long as it is told."""

    def __init__(self, monkeypatch):
        self.instead = None
        monkeypatch.setattr(bilmo.train.loop, "full_loss", self)

    def __call__(self, softmax, outputs, targets):
        mean, each = full_loss(softmax, outputs, targets)
        return (mean if self.instead is None else mean * self.instead), each


@pytest.mark.parametrize("instead", [1e4, math.nan, math.inf], ids=str)
@pytest.mark.parametrize("context", ["sentences", "stream"])
def test_an_exploding_step_is_undone_and_told(tmp_path, monkeypatch, instead, context):
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


def test_a_new_softmax_predicts_words_by_their_counts_or_all_alike(tmp_path):
    write_text(tmp_path)
    run = loop(tmp_path, vocab_size=6)
    text = run.corpus.sentences("train")
    vocab = run.shape.vocab.words
    known = [word if word in vocab else "<UNK>" for word in np.array(run.corpus.words)[text.ids].tolist()]
    counts = Counter([*known, *["<S>", "</S>"] * (len(text.ends) // 2)])
    expected = torch.tensor([counts[word] + 1 for word in vocab]) / (len(known) + len(text.ends) + len(vocab))
    torch.testing.assert_close(run.model.softmax.bias.exp(), expected, rtol=0.01, atol=0)  # an odd sentence is cut off
    assert counts["<UNK>"] > 0
    assert not loop(tmp_path, prior="flat").model.softmax.bias.any()


def test_a_step_whose_gradient_alone_is_not_a_number_is_undone(tmp_path):
    write_text(tmp_path)
    run = loop(tmp_path)
    run.step(run.text(0)[0], 0.1)
    before = copied(run)
    handle = run.model.softmax.bias.register_hook(lambda gradient: gradient * math.nan)
    assert run.step(run.text(0)[1], 0.1).skipped and same(before, copied(run))
    handle.remove()


def test_ten_steps_in_a_row_end_the_run_and_leave_the_last_good_weights(tmp_path, monkeypatch):
    text = write_text(tmp_path)
    loss = Exploding(monkeypatch)
    path = tmp_path / "model" / "training" / "checkpoint.safetensors"
    good = {}
    with pytest.raises(BilmoError, match=r"10 steps in a row exploded, up to step 16 .* Try a lower rate"):
        for event in train([text], tmp_path / "model", recipe(tmp_path, save_every=7)):
            if isinstance(event, Step) and event.number == 7:
                loss.instead = 1e9
            if isinstance(event, Step) and event.number == 8:
                good = checkpoint.read(path).model
    last = checkpoint.read(path)
    assert last.progress.steps == 7 and last.progress.skipped == 0  # nothing is saved while steps are undone
    assert all(torch.equal(value, good[name]) for name, value in last.model.items())
    loss.instead = None
    assert list(train([text], tmp_path / "model", recipe(tmp_path, save_every=7)))[-1].progress.finished


def test_weights_that_a_step_has_spoiled_are_taken_back(tmp_path):
    write_text(tmp_path)
    (tmp_path / "training").mkdir()
    run = loop(tmp_path, save_every=5)
    skipped = []
    for event in run.events():
        if isinstance(event, Step):
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


def test_the_command_tells_what_exploded_and_stops_with_an_error(tmp_path, monkeypatch):
    write_text(tmp_path)
    calls = []

    def explode(softmax, outputs, targets):
        calls.append(1)
        mean, each = full_loss(softmax, outputs, targets)
        return (mean * math.nan if len(calls) > 2 + 13 else mean), each  # two are tried before the first step

    monkeypatch.setattr(bilmo.train.loop, "full_loss", explode)
    done = program(tmp_path, *COMMAND)
    assert done.code == 1 and "10 steps in a row exploded" in done.err
    assert done.err.count("the loss exploded (nan); the step was undone") == 9
    assert "NaN" not in (tmp_path / "model" / "train.jsonl").read_text(encoding="utf-8")
    assert [entry["number"] for entry in log(tmp_path / "model", "step") if entry["skipped"]] == list(range(14, 23))
    assert np.isfinite(bilmo.load(tmp_path / "model").embed([["the", "cat"]], mix="mean")[0]).all()


def arrays(step):
    return [step.forward.inputs, step.forward.targets, step.backward.inputs, step.backward.targets, step.lengths]


@pytest.mark.parametrize("context", ["sentences", "stream"])
def test_the_text_of_a_step_follows_from_seed_epoch_and_number_alone(tmp_path, context):
    write_text(tmp_path)
    changes = {"context": context, "window": 5}
    one, other = loop(tmp_path, **changes), loop(tmp_path, **changes)
    forwards = [arrays(one.text(1)[number]) for number in range(len(one.text(1)))]
    for number in (0, 1, 2):  # whatever was read and trained before
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

    # Not only in another order: other sentences come together.
    assert batches(one, 0) != batches(one, 1)
    assert batches(one, 0) != batches(loop(tmp_path, **changes, seed=2), 0)


def test_every_word_of_the_training_text_comes_once_an_epoch(tmp_path):
    write_text(tmp_path)
    run = loop(tmp_path)
    ids = run.corpus.sentences("train").ids
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


def test_a_step_that_is_tried_changes_nothing(tmp_path):
    write_text(tmp_path)
    run, other = loop(tmp_path, average=0.5), loop(tmp_path, average=0.5)
    before = copied(run)
    cost = run.rehearse()
    assert cost.seconds > 0 and cost.memory > 1_000_000
    assert same(before, copied(run)) and all(p.grad is None for p in run.model.parameters())
    assert run.step(run.text(0)[0], 0.1).loss == other.step(other.text(0)[0], 0.1).loss
    assert same(copied(run), copied(other))


def test_the_time_a_run_will_take_is_told_before_it_starts_and_when_it_goes_on(tmp_path, monkeypatch):
    text = write_text(tmp_path)
    monkeypatch.setattr(Loop, "_tried", lambda self, text: 60.0)  # a minute a step
    monkeypatch.setattr(Loop, "_look_seconds", lambda self: 0.0)
    done = program(tmp_path, *COMMAND)
    steps = len(log(tmp_path / "model", "step"))
    assert f"time left      0:{steps}:00, about" in done.out and "run            new" in done.out
    events = train([text], tmp_path / "broken", recipe(tmp_path))
    for event in events:
        if isinstance(event, Step) and event.number == 12:
            break
    events.close()
    again = next(train([text], tmp_path / "broken", recipe(tmp_path)))
    assert again.resumed and again.cost.seconds == pytest.approx(60 * (steps - 10))  # the checkpoint of step 10
    timed = next(train([text], tmp_path / "timed", recipe(tmp_path, minutes=3)))
    assert timed.cost.seconds == 180
    monkeypatch.setattr(Loop, "_look_seconds", lambda self: 100.0)
    looking = next(train([text], tmp_path / "looking", recipe(tmp_path, evaluate_every=steps // 2)))
    assert looking.cost.seconds == pytest.approx(60 * steps + 100 * steps / (steps // 2))


def test_a_look_at_held_out_text_counts_as_time_of_the_run(tmp_path):
    write_text(tmp_path)
    run = loop(tmp_path)
    assert run.progress.seconds == 0
    run._look()
    assert run.progress.seconds > 0


def test_passes_of_unequal_length_have_a_look_each(tmp_path, monkeypatch):
    write_text(tmp_path)
    (tmp_path / "training").mkdir()
    run = loop(tmp_path, evaluate_every=10**6, epochs=6)
    passes = [41, 43, 40, 44, 42, 40, 40]

    def step(text, done):
        run.progress.step += 1
        run.progress.steps += 1
        return text

    monkeypatch.setattr(run, "text", lambda epoch: range(passes[epoch]))
    monkeypatch.setattr(run, "step", step)
    looks = [0, *(event.number for event in run.events() if isinstance(event, Look))]
    assert len(looks) in (7, 8) and looks[-1] == sum(passes[:6])
    assert all(40 <= gap <= 44 for gap in np.diff(looks[:-1]))  # the last one ends the run


@pytest.mark.parametrize("words, highways", [("chars", 2), ("chars+table", 2), ("table", 0)])
def test_highways_come_after_the_projection_where_words_are_spelled(tmp_path, words, highways):
    write_text(tmp_path)
    run = loop(tmp_path, words=words, highways=0, word_highways=2)
    assert len(run.model.bilm.words.highways) == highways
    run.step(run.text(0)[0], 0.5)
    parts = [p for name, p in run.model.named_parameters() if name.startswith("bilm.words.highways.")]
    assert len(parts) == 4 * highways and all(part.grad.abs().sum() > 0 for part in parts)
    assert ("| word highways | 2 |" in bilmo.store.card.card_of(run.bundle())) == bool(highways)

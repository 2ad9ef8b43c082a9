"""Devices and precisions, as far as a processor shows them."""

import pytest
import torch

from bilmo.training.run import train
from program import program
from small_runs import log, loop, recipe, same_bits, weights, write_text

COMMAND = ("train", "text.txt", "-o", "model", "--recipe", "recipe.toml")


@pytest.mark.parametrize(
    "name, says",
    [("nonsense", "accepted: auto, cpu"), ("meta", "accepted: auto, cpu"), ("cuda:99", "torch cannot use it here")],
)
def test_a_missing_device_is_refused_and_leaves_no_folder(tmp_path, name, says):
    write_text(tmp_path)
    done = program(tmp_path, *COMMAND, "--device", name)
    assert done.code == 1 and f"device is '{name}'; {says}" in done.err
    assert not (tmp_path / "model").exists()


def test_an_unknown_precision_is_refused(tmp_path):
    write_text(tmp_path)
    done = program(tmp_path, *COMMAND, "--precision", "half")
    assert done.code == 1 and "train.precision" in done.err and "'float32' or 'bfloat16'" in done.err


def gradient(folder, **changes):
    """The gradient of a first step, all parameters in a row, and its loss."""
    run = loop(folder, optimizer="sgd", clip=1e9, dropout=0.0, **changes)
    loss = run.step(run.text(0)[0], 0.5).loss
    found = [parameter.grad for parameter in run.model.parameters()]  # none for the learned start, in a stream
    return torch.cat([part.flatten() for part in found if part is not None]), loss


@pytest.mark.parametrize("context", ["sentences", "stream"])
@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_gradients_in_bfloat16_are_close_to_those_in_float32(tmp_path, cell, context):
    write_text(tmp_path)
    changes = {"cell": cell, "context": context, "window": 5}
    full, loss = gradient(tmp_path, **changes)
    half, near = gradient(tmp_path, **changes, precision="bfloat16")
    assert full.dtype == half.dtype == torch.float32
    assert 0 < float((half - full).norm() / full.norm()) < 2e-2  # not 0, or it would not have been bfloat16
    assert near == pytest.approx(loss, rel=1e-2)


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_a_run_in_bfloat16_learns_and_keeps_its_weights_in_float32(tmp_path, cell):
    text = write_text(tmp_path, words=("the", "cat", "the", "cat", "the", "cat", "."))
    settings = recipe(tmp_path, cell=cell, precision="bfloat16", dropout=0.0, device="cpu", prior="flat")
    list(train([text], tmp_path / "model", settings))
    losses = [entry["loss"] for entry in log(tmp_path / "model", "step")]
    assert sum(losses[-4:]) / 4 < 0.85 * losses[0]
    run = loop(tmp_path, cell=cell, precision="bfloat16")
    run.step(run.text(0)[0], 0.5)
    assert {value.dtype for value in run.model.state_dict().values()} == {torch.float32}


def test_a_run_in_bfloat16_is_resumed_to_the_same_bits(tmp_path):
    text = write_text(tmp_path)
    settings = recipe(tmp_path, precision="bfloat16", context="stream", window=5, epochs=1)
    list(train([text], tmp_path / "undisturbed", settings))
    events = train([text], tmp_path / "model", settings)
    for _, _event in zip(range(9), events, strict=False):
        pass
    events.close()
    list(train([text], tmp_path / "model", settings))
    assert same_bits(weights(tmp_path / "model"), weights(tmp_path / "undisturbed"))


def test_the_memory_of_an_lstm_stays_in_float32(tmp_path):
    """In bfloat16 a memory of 1 that grows by 0.001 at every step would never grow."""
    write_text(tmp_path)
    run = loop(tmp_path, precision="bfloat16", context="stream", window=5)
    run.step(run.text(0)[0], 0.5)
    parts = run.checkpoint().part("state")
    assert {part.dtype for part in parts.values()} == {torch.float32}
    memory = torch.cat([part.flatten() for name, part in parts.items() if name.endswith(".c")])
    assert not torch.equal(memory, memory.bfloat16().float())


def test_evaluations_of_a_run_in_bfloat16_are_in_float32(tmp_path):
    write_text(tmp_path)
    half, full = (loop(tmp_path, precision=precision) for precision in ("bfloat16", "float32"))
    assert half.held_out_loss(100) == full.held_out_loss(100)

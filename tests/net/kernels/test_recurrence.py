import itertools

import pytest
import torch

import bilmo.net.kernels.recurrence
from bilmo.net.cells import Cell
from bilmo.net.config import CellConfig
from bilmo.net.kernels.packed import PlainWeights
from bilmo.net.kernels.recurrence import GRU, LSTM, RNN, Steps, lstm

# B rows, N all steps of all rows, D output width, H memory cells

ROWS = [(1,), (3,), (2, 2, 2), (4, 3, 3, 1, 1), (5, 1)]
"""Rows still running at each step: one step or many, equal lengths or not."""

WIDTH_IN, D, H = 3, 4, 5
CLIPS = {"no clip": (None, None), "cell": (0.2, None), "projection": (None, 0.3), "both": (0.15, 0.25)}


def draw(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype).requires_grad_()


def tensors(kind, rows, *, project=False, dtype=torch.float64):
    """What a cell's function is given, steps and clips left out: x, states, W, U, b and perhaps P."""
    torch.manual_seed(sum(rows) + len(rows))
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[kind]
    cells = H if project else D
    shapes = [(sum(rows), WIDTH_IN), (rows[0], D)]
    if kind == "lstm":
        shapes.append((rows[0], cells))
    shapes += [(gates * cells, WIDTH_IN), (gates * cells, D), (gates * cells,)]
    if project:
        shapes.append((D, cells))
    return [draw(*shape, dtype=dtype) for shape in shapes]


def run(kind, rows, given, clips=(None, None), keep=True):
    x, *rest = given
    steps = Steps(rows)
    if kind == "rnn":
        return RNN.apply(x, steps, *rest)
    if kind == "gru":
        return GRU.apply(x, steps, *rest)
    h, c, w, u, b, *p = rest
    p = p[0] if p else None
    if keep:
        return LSTM.apply(x, steps, h, c, w, u, b, p, clips)
    return lstm(x, steps, (h, c), PlainWeights(w, u, b, p), clips)


def rnn_step(x, state, w, u, b):
    (h,) = state
    return (torch.tanh(w @ x + u @ h + b),)


def gru_step(x, state, w, u, b):
    (h,) = state
    (wz, wr, wn), (uz, ur, un), (bz, br, bn) = w.chunk(3), u.chunk(3), b.chunk(3)
    z = torch.sigmoid(wz @ x + uz @ h + bz)
    r = torch.sigmoid(wr @ x + ur @ h + br)
    return ((1 - z) * h + z * torch.tanh(wn @ x + un @ (r * h) + bn),)


def lstm_step(x, state, w, u, b, p=None, *, clips=(None, None)):
    h, c = state
    i, f, o, new = (w @ x + u @ h + b).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(new)
    c = c if clips[0] is None else c.clamp(-clips[0], clips[0])
    h = torch.sigmoid(o) * torch.tanh(c)
    if p is not None:
        h = p @ h
        h = h if clips[1] is None else h.clamp(-clips[1], clips[1])
    return h, c


def run_plainly(kind, rows, given, clips=(None, None)):
    """The same with ordinary operations, each row alone from its first step to its last."""
    x, *rest = given
    states = 2 if kind == "lstm" else 1
    before, weights = rest[:states], rest[states:]
    out, last = [None] * len(x), []
    for row in range(rows[0]):
        state = tuple(s[row] for s in before)
        for t in range(len(rows)):
            if row < rows[t]:
                place = sum(rows[:t]) + row
                if kind == "lstm":
                    state = lstm_step(x[place], state, *weights, clips=clips)
                else:
                    state = (rnn_step if kind == "rnn" else gru_step)(x[place], state, *weights)
                out[place] = state[0]
        last.append(state)
    return torch.stack(out), *(torch.stack(parts) for parts in zip(*last, strict=True))


def gradients(results, given, used):
    """Of a random weighting of the results, those left out that are not `used`."""
    torch.manual_seed(7)
    weights = [torch.randn_like(result) for result in results]
    total = sum((r * w).sum() for r, w, use in zip(results, weights, used, strict=True) if use)
    return torch.autograd.grad(total, given, allow_unused=True, retain_graph=True)


def assert_agrees_with_plain_autograd(kind, rows, given, clips=(None, None), close=1e-9):
    found, expected = run(kind, rows, given, clips), run_plainly(kind, rows, given, clips)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, atol=close, rtol=close)
    for used in itertools.product([True, False], repeat=len(found)):
        if any(used):
            ours, plain = gradients(found, given, used), gradients(expected, given, used)
            for a, b in zip(ours, plain, strict=True):
                b = torch.zeros_like(a) if b is None else b  # one plain step does not reach what it does not use
                torch.testing.assert_close(a, b, atol=close, rtol=close)


@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize("kind", ["rnn", "gru"])
def test_rnn_and_gru_have_the_values_and_gradients_of_a_plain_loop(kind, rows):
    assert_agrees_with_plain_autograd(kind, rows, tensors(kind, rows))


@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize("clips", [CLIPS["no clip"], CLIPS["cell"]], ids=["no clip", "cell"])
def test_an_lstm_without_projection_has_the_values_and_gradients_of_a_plain_loop(clips, rows):
    assert_agrees_with_plain_autograd("lstm", rows, tensors("lstm", rows), clips)


@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize("clips", CLIPS.values(), ids=CLIPS)
def test_an_lstm_with_projection_has_the_values_and_gradients_of_a_plain_loop(clips, rows):
    assert_agrees_with_plain_autograd("lstm", rows, tensors("lstm", rows, project=True), clips)


@pytest.mark.parametrize("clip", [0.1, 0.3, 0.7])  # none of them is a number that float32 has exactly
def test_gradients_stop_at_a_clip_in_single_precision_too(clip):
    rows = (4, 3, 1)
    given = tensors("lstm", rows, project=True, dtype=torch.float32)
    out, _, c = run("lstm", rows, given, (clip, clip))
    assert (out.abs() == torch.tensor(clip)).any() and (c.abs() == torch.tensor(clip)).any()
    assert_agrees_with_plain_autograd("lstm", rows, given, (clip, clip), close=1e-4)


@pytest.mark.parametrize("kind, project", [("rnn", False), ("gru", False), ("lstm", False), ("lstm", True)])
def test_gradients_agree_with_finite_differences(kind, project):
    rows = (3, 2, 2, 1)
    assert torch.autograd.gradcheck(
        lambda *given: run(kind, rows, given), tensors(kind, rows, project=project), fast_mode=False
    )


@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("clips", [CLIPS["no clip"], CLIPS["cell"], CLIPS["both"]], ids=["no clip", "cell", "both"])
@pytest.mark.parametrize("block", [1, 70, 1 << 21])
def test_an_lstm_that_keeps_nothing_gives_the_same_values(clips, project, rows, block, monkeypatch):
    monkeypatch.setattr(bilmo.net.kernels.recurrence, "BLOCK_GATES", block)
    clips = clips if project else (clips[0], None)
    given = tensors("lstm", rows, project=project)
    with torch.no_grad():
        kept, not_kept = (run("lstm", rows, given, clips, keep=keep) for keep in (True, False))
    for a, b in zip(kept, not_kept, strict=True):
        torch.testing.assert_close(a, b, atol=1e-13, rtol=1e-13)


@pytest.mark.parametrize("kind, project", [("rnn", False), ("gru", False), ("lstm", False), ("lstm", True)])
def test_what_is_given_is_not_written_to(kind, project):
    rows = (3, 2, 1)
    given = tensors(kind, rows, project=project)
    copies = [tensor.detach().clone() for tensor in given]
    results = run(kind, rows, given, (0.2, 0.2) if project else (None, None))
    sum(result.sum() for result in results).backward()
    for tensor, copy in zip(given, copies, strict=True):
        assert torch.equal(tensor, copy)


@pytest.mark.parametrize("learns", ["x", "h", "c", "input", "recur", "bias", "project"])
def test_an_lstm_cell_passes_gradients_to_whatever_alone_asks_for_them(learns):
    torch.manual_seed(0)
    cell = Cell(CellConfig(cells=H, cell_clip=None, projection_clip=None), width=D).requires_grad_(False)
    x, h, c = torch.randn(3, D), torch.randn(2, D), torch.randn(2, H)
    wanted = {"x": x, "h": h, "c": c, **dict(cell.named_parameters())}[learns].requires_grad_()
    out, last = cell(x, Steps((2, 1)), (h, c))
    (out.sum() + last[0].sum() + last[1].sum()).backward()
    assert wanted.grad is not None and wanted.grad.abs().sum() > 0


def test_the_forget_bias_is_added_at_use_and_not_stored():
    torch.manual_seed(0)
    cell, other = (Cell(CellConfig(cells=H, forget_bias=bias), width=D) for bias in (1.5, 0.0))
    other.load_state_dict(cell.state_dict())
    given = torch.randn(4, D), Steps((2, 2)), (torch.randn(2, D), torch.randn(2, H))
    assert not cell.bias.any()
    assert not torch.allclose(cell(*given)[0], other(*given)[0])
    with torch.no_grad():
        other.bias[H : 2 * H] += 1.5
    assert torch.equal(cell(*given)[0], other(*given)[0])

"""The task's own LSTM against torch's."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from bilmo.tasks.network.recurrent import DeepRecurrent, Recurrent

from strategies import seeds

WIDTH, HIDDEN = 3, 4


def torchs(ours: Recurrent) -> nn.LSTM:
    """The same weights in torch's order of gates: in, forget, new, out, and with two biases."""
    cells = [cell for cell in (ours.forward_cell, ours.backward_cell) if cell is not None]
    theirs = nn.LSTM(WIDTH, HIDDEN, batch_first=True, bidirectional=len(cells) == 2)

    def ordered(values: torch.Tensor) -> torch.Tensor:
        i, f, o, new = values.detach().chunk(4)
        return torch.cat([i, f, new, o])

    with torch.no_grad():
        for cell, end in zip(cells, ("", "_reverse"), strict=False):
            getattr(theirs, f"weight_ih_l0{end}").copy_(ordered(cell.input))
            getattr(theirs, f"weight_hh_l0{end}").copy_(ordered(cell.recur))
            getattr(theirs, f"bias_ih_l0{end}").copy_(ordered(cell.used_bias()))
            getattr(theirs, f"bias_hh_l0{end}").zero_()
    return theirs


@given(seeds(), st.lists(st.integers(1, 6), min_size=1, max_size=4), st.booleans())
def test_equal_to_torchs_lstm_forward_and_backward(seed, lengths, both):
    torch.manual_seed(seed)
    ours = Recurrent(WIDTH, HIDDEN, both=both)
    theirs = torchs(ours)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    x = torch.randn(*mask.shape, WIDTH, requires_grad=True)
    same = x.detach().clone().requires_grad_()
    weigh = torch.randn(*mask.shape, ours.output_width)
    found = ours(x, mask)
    packed = pack_padded_sequence(same, mask.sum(dim=1), batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(theirs(packed)[0], batch_first=True)
    torch.testing.assert_close(found, expected)
    (found * weigh).sum().backward()
    (expected * weigh).sum().backward()
    torch.testing.assert_close(x.grad, same.grad)
    i, f, new, o = theirs.weight_ih_l0.grad.chunk(4)
    torch.testing.assert_close(ours.forward_cell.input.grad, torch.cat([i, f, o, new]))


def test_a_text_without_tokens_gives_zeros_and_leaves_others_alone():
    torch.manual_seed(0)
    ours = Recurrent(WIDTH, HIDDEN, both=True)
    x = torch.randn(2, 3, WIDTH)
    mask = torch.tensor([[True, True, True], [False, False, False]])
    found = ours(x, mask)
    assert not found[1].any()
    torch.testing.assert_close(found[:1], ours(x[:1], mask[:1]))


def test_rows_that_are_all_shorter_than_the_batch():
    torch.manual_seed(0)
    x = torch.randn(2, 5, WIDTH)
    mask = torch.arange(5) < torch.tensor([[3], [1]])
    for ours in (Recurrent(WIDTH, HIDDEN, both=True), DeepRecurrent(WIDTH, HIDDEN, 3, dropout=0.1).eval()):
        found = ours(x, mask)
        torch.testing.assert_close(found[:, :3], ours(x[:, :3], mask[:, :3]))
        assert found.shape == (2, 5, 2 * HIDDEN) and not found[:, 3:].any()


def test_a_highway_chooses_between_the_input_and_the_output_of_a_layer():
    torch.manual_seed(0)
    ours = DeepRecurrent(WIDTH, HIDDEN, 2, dropout=0.5).eval()
    x, mask = torch.randn(2, 3, WIDTH), torch.ones(2, 3, dtype=torch.bool)
    first = ours.layers[0](x, mask)
    second = ours.layers[1](first, mask)
    for bias, expected in ((100.0, second), (-100.0, first), (0.0, (first + second) / 2)):
        with torch.no_grad():
            ours.gates[1].weight.zero_()
            ours.gates[1].bias.fill_(bias)
        torch.testing.assert_close(ours(x, mask), expected)

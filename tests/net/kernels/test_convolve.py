"""The training convolutions against torch's own."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from bilmo.net.kernels import convolve
from bilmo.net.kernels.convolve import MaxOverPositions


def _general(chars: Tensor, table: Tensor, convolutions: list[nn.Conv1d]) -> Tensor:
    embedded = nn.functional.embedding(chars, table).transpose(1, 2)
    return torch.cat([conv(embedded).amax(dim=2) for conv in convolutions], dim=1)


def _ours(chars: Tensor, table: Tensor, convolutions: list[nn.Conv1d]) -> Tensor:
    filters = [part for conv in convolutions for part in (conv.weight, conv.bias)]
    return MaxOverPositions.apply(chars, table, *filters)


@settings(max_examples=60)
@given(
    words=st.lists(st.lists(st.integers(0, 19), min_size=0, max_size=9), min_size=1, max_size=12),
    filters=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 5)), min_size=1, max_size=4),
    seed=st.integers(0, 1000),
    at_once=st.sampled_from([1, 7, 1 << 22]),
)
def test_answers_and_gradients_are_those_of_a_general_convolution(
    words: list[list[int]], filters: list[tuple[int, int]], seed: int, at_once: int
) -> None:
    torch.manual_seed(seed)
    most = max(4, *(len(word) for word in words))
    chars = torch.tensor([word + [0] * (most - len(word)) for word in words])  # padding: many equal windows
    table = torch.randn(20, 3, dtype=torch.float64, requires_grad=True)
    convolutions = [nn.Conv1d(3, n, w).double() for w, n in filters]
    parameters = [table, *(p for conv in convolutions for p in conv.parameters())]
    weights = torch.randn(len(words), sum(n for _, n in filters), dtype=torch.float64)

    expected = _general(chars, table, convolutions)
    wanted = torch.autograd.grad((expected * weights).sum(), parameters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolve, "CHUNK_ACTIVATIONS", at_once)
        found = _ours(chars, table, convolutions)
    got = torch.autograd.grad((found * weights).sum(), parameters)
    torch.testing.assert_close(found, expected)
    for a, b in zip(got, wanted, strict=True):
        torch.testing.assert_close(a, b)


def test_half_precision_of_the_rest_leaves_them_in_float32() -> None:
    torch.manual_seed(1)
    table = torch.randn(9, 4, requires_grad=True)
    convolutions = [nn.Conv1d(4, 5, 2)]
    chars = torch.randint(0, 9, (6, 7))
    with torch.autocast("cpu", torch.bfloat16):
        found = _ours(chars, table, convolutions)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, _general(chars, table, convolutions))
    found.sum().backward()
    assert table.grad is not None and table.grad.dtype == torch.float32


def test_a_value_that_is_no_number_goes_through_and_stops_nothing() -> None:
    table = torch.randn(9, 4, requires_grad=True)
    convolutions = [nn.Conv1d(4, 5, 2)]
    with torch.no_grad():
        convolutions[0].weight[2] = float("nan")
    found = _ours(torch.randint(0, 9, (6, 7)), table, convolutions)
    assert found.isnan().nonzero()[:, 1].unique().tolist() == [2]
    found.sum().backward()
    assert table.grad is not None and table.grad.isnan().any()

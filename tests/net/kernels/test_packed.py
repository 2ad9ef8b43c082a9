import pytest
import torch

import bilmo.net.kernels.lstm
import bilmo.net.kernels.packed
import bilmo.net.kernels.recurrence
from bilmo.net.cells import Cell
from bilmo.net.config import CellConfig
from bilmo.net.kernels.packed import PackedLinear
from bilmo.net.kernels.recurrence import Steps


@pytest.fixture(params=["packed", "plain"])
def packing(request, monkeypatch):
    """With the private operators of torch, and where they are missing."""
    if request.param == "plain":
        monkeypatch.setattr(bilmo.net.kernels.packed, "_has_packing", lambda: False)
    return request.param


@pytest.fixture(params=["compiled", "python"])
def loop(request, monkeypatch):
    """With torch's compiler, and where there is none."""
    if request.param == "python":
        monkeypatch.setattr(bilmo.net.kernels.recurrence, "compiled", lambda steps: steps)
    return request.param


@pytest.mark.parametrize("rows", [1, 2, 3, 17, 64, 100])
def test_a_packed_product_is_a_product(packing, rows):
    torch.manual_seed(0)
    weight, bias, x = torch.randn(24, 10), torch.randn(24), torch.randn(rows, 10)
    expected = x.double() @ weight.double().t() + bias.double()
    torch.testing.assert_close(PackedLinear(weight, bias)(x).double(), expected, atol=1e-5, rtol=1e-5)


def test_missing_operators_are_found_out_and_not_used(monkeypatch):
    bilmo.net.kernels.packed._has_packing.cache_clear()
    monkeypatch.setattr(bilmo.net.kernels.packed, "_pack", lambda weight: torch.ops.mkldnn.no_such_operator(weight))
    assert not bilmo.net.kernels.packed._has_packing()
    bilmo.net.kernels.packed._has_packing.cache_clear()


def test_operators_that_give_wrong_numbers_are_not_used(monkeypatch):
    bilmo.net.kernels.packed._has_packing.cache_clear()
    monkeypatch.setattr(bilmo.net.kernels.packed, "_linear", lambda x, packed, bias: torch.zeros(5, 16))
    assert not bilmo.net.kernels.packed._has_packing()
    bilmo.net.kernels.packed._has_packing.cache_clear()


def test_where_torch_compiles_nothing_the_same_function_runs_as_it_is(monkeypatch):
    def none(function):
        raise RuntimeError("no compiler here")

    bilmo.net.kernels.lstm.compiled.cache_clear()
    monkeypatch.setattr(torch.jit, "script", none)
    assert bilmo.net.kernels.lstm.compiled(bilmo.net.kernels.lstm.lstm_steps) is bilmo.net.kernels.lstm.lstm_steps
    bilmo.net.kernels.lstm.compiled.cache_clear()


@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("rows", [(5, 4, 4, 1), (1, 1, 1), (2,)], ids=str)
def test_a_prepared_layer_gives_what_it_gave_before(packing, loop, project, rows):
    torch.manual_seed(0)
    cell = Cell(CellConfig(cells=12 if project else 6, project=project, projection_clip=0.3 if project else None), 6)
    steps, x = Steps(rows), torch.randn(sum(rows), 6)
    state = tuple(torch.randn(rows[0], width) for width in ((6, 12) if project else (6, 6)))
    before, last = cell(x, steps, state)  # with gradients: plain weights
    cell.prepare()
    with torch.no_grad():
        after, end = cell(x, steps, state)
    torch.testing.assert_close(after, before.detach(), atol=1e-5, rtol=1e-5)
    for a, b in zip(end, last, strict=True):
        torch.testing.assert_close(a, b.detach(), atol=1e-5, rtol=1e-5)


def test_a_prepared_layer_still_trains():
    torch.manual_seed(0)
    cell = Cell(CellConfig(cells=12), 6)
    cell.prepare()
    out, _ = cell(torch.randn(3, 6), Steps((2, 1)), cell.zero_state(2))
    out.sum().backward()
    assert cell.recur.grad is not None and cell.recur.grad.abs().sum() > 0

import pytest
import torch

import bilmo.net.gemm
from bilmo.net.cells import Cell
from bilmo.net.config import CellConfig
from bilmo.net.gemm import Product
from bilmo.net.recurrence import Steps


@pytest.fixture(params=["packed", "plain"])
def packing(request, monkeypatch):
    """With the private operators of torch, and where they are missing."""
    if request.param == "plain":
        monkeypatch.setattr(bilmo.net.gemm, "_has_packing", lambda: False)
    return request.param


@pytest.mark.parametrize("rows", [1, 2, 3, 17, 64, 100])
@pytest.mark.parametrize("bias", [False, True])
def test_a_product_is_a_product(packing, rows, bias):
    torch.manual_seed(0)
    weight, b = torch.randn(24, 10), torch.randn(24) if bias else None
    x, plus = torch.randn(rows, 10), torch.randn(rows, 24)
    product = Product(weight, b)
    expected = x.double() @ weight.double().t() + (0 if b is None else b.double())
    torch.testing.assert_close(product(x).double(), expected, atol=1e-5, rtol=1e-5)
    if b is None:
        before = plus.clone()
        torch.testing.assert_close(product(x, plus).double(), expected + before.double(), atol=1e-5, rtol=1e-5)


def test_missing_operators_are_found_out_and_not_used(monkeypatch):
    bilmo.net.gemm._has_packing.cache_clear()
    monkeypatch.setattr(bilmo.net.gemm, "_pack", lambda weight: torch.ops.mkldnn.no_such_operator(weight))
    assert not bilmo.net.gemm._has_packing()
    bilmo.net.gemm._has_packing.cache_clear()


def test_operators_that_give_wrong_numbers_are_not_used(monkeypatch):
    bilmo.net.gemm._has_packing.cache_clear()
    monkeypatch.setattr(bilmo.net.gemm, "_linear", lambda x, packed, bias: torch.zeros(5, 16))
    assert not bilmo.net.gemm._has_packing()
    bilmo.net.gemm._has_packing.cache_clear()


@pytest.mark.parametrize("project", [False, True])
def test_a_prepared_layer_gives_what_it_gave_before(packing, project):
    torch.manual_seed(0)
    cell = Cell(CellConfig(cells=12 if project else 6, project=project, projection_clip=0.3 if project else None), 6)
    steps, x = Steps((5, 4, 4, 1)), torch.randn(14, 6)
    state = tuple(torch.randn(5, width) for width in ((6, 12) if project else (6, 6)))
    with torch.no_grad():
        before, last = cell(x, steps, state)
        cell.prepare()
        after, end = cell(x, steps, state)
    torch.testing.assert_close(after, before, atol=1e-5, rtol=1e-5)
    for a, b in zip(end, last, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


def test_a_prepared_layer_still_trains():
    torch.manual_seed(0)
    cell = Cell(CellConfig(cells=12), 6)
    cell.prepare()
    out, _ = cell(torch.randn(3, 6), Steps((2, 1)), cell.zero_state(2))
    out.sum().backward()
    assert cell.recur.grad is not None and cell.recur.grad.abs().sum() > 0

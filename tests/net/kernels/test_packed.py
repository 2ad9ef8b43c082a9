import subprocess
import sys

import pytest
import torch

import bilmo.net.kernels.lstm
import bilmo.net.kernels.packed
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
        monkeypatch.setattr(bilmo.net.kernels.packed, "compiled", lambda steps: steps)
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
    plain = bilmo.net.kernels.packed._pack
    monkeypatch.setattr(bilmo.net.kernels.packed, "_pack", lambda weight: plain(2 * weight))
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
    with torch.no_grad():
        after, end = cell.prepared("float32")(x, steps, state)
    torch.testing.assert_close(after, before.detach(), atol=1e-5, rtol=1e-5)
    for a, b in zip(end, last, strict=True):
        torch.testing.assert_close(a, b.detach(), atol=1e-5, rtol=1e-5)


IMPORT = """
import os
before = dict(os.environ)
import bilmo.embed.load, bilmo.training.run, bilmo.tasks.core.estimator
print(sorted(name for name in os.environ if before.get(name) != os.environ[name]))
"""


def test_importing_the_library_sets_no_environment_variable():
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

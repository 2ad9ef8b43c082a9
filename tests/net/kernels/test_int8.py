"""Eight bits: near to float32, the same whatever stands beside, never overflowing, refused where torch lacks it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bilmo
import bilmo.net.kernels.int8
from bilmo.errors import ConfigError
from bilmo.net.cells import Cell
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.net.kernels.int8 import Int8Linear, _has_int8, times
from bilmo.net.kernels.recurrence import Steps

# Asked of torch itself: a fault of our own check must fail here, not skip.
HAS_INT8 = "fbgemm" in torch.backends.quantized.supported_engines
pytestmark = pytest.mark.skipif(not HAS_INT8, reason="this torch does not multiply in eight bits here")

sizes = st.integers(1, 70)


def coarse(weight):
    """What is multiplied before a gate, as a function of x."""
    packed = bilmo.net.kernels.int8._pack(weight)

    def product(x):
        values, largest = times(x, packed)
        return values * largest

    return product


def fine(weight):
    """What makes a vector."""
    return Int8Linear(weight, torch.zeros(len(weight)))


both = pytest.mark.parametrize(("kind", "numbers"), [(coarse, 63), (fine, 63 * 126)])


@both
@settings(max_examples=40)
@given(rows=sizes, inputs=sizes, outputs=sizes, scale=st.sampled_from([1e-6, 1.0, 1e4]), seed=st.integers(0, 9))
def test_a_product_is_right_to_what_its_bits_hold(kind, numbers, rows, inputs, outputs, scale, seed):
    random = torch.Generator().manual_seed(seed)
    weight = torch.randn(outputs, inputs, generator=random)
    x = scale * torch.randn(rows, inputs, generator=random)
    x_step, weight_step = x.abs().amax(1, keepdim=True) / numbers, weight.abs().amax(1) / 127
    error = x_step / 2 * weight.abs().sum(1) + weight_step / 2 * (x.abs() + x_step / 2).sum(1, keepdim=True)
    rounding = 1e-5 * x.abs().sum(1, keepdim=True)
    assert bool(((kind(weight)(x) - x @ weight.t()).abs() <= 1.01 * error + rounding).all())


@both
@pytest.mark.parametrize("inputs", [2, 31, 512, 4096])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_values_of_all_do_not_overflow(kind, numbers, inputs, sign):
    found = kind(torch.full((16, inputs), float(sign)))(torch.ones(3, inputs))
    torch.testing.assert_close(found, torch.full((3, 16), float(sign * inputs)), rtol=1e-4, atol=0)


@both
def test_rows_of_zeros_are_zero(kind, numbers):
    assert not kind(torch.randn(4, 8))(torch.zeros(2, 8)).any()
    assert not kind(torch.zeros(4, 8))(torch.randn(2, 8)).any()


def test_a_bias_is_added():
    bias = torch.randn(4)
    assert torch.equal(Int8Linear(torch.randn(4, 8), bias)(torch.zeros(2, 8)), bias.expand(2, 4))


@both
@settings(max_examples=30)
@given(rows=st.integers(2, 70), seed=st.integers(0, 9))
def test_a_row_is_multiplied_the_same_beside_any_other(kind, numbers, rows, seed):
    random = torch.Generator().manual_seed(seed)
    product = kind(torch.randn(33, 20, generator=random))
    x = torch.randn(rows, 20, generator=random)
    beside_large = torch.cat([x[:1], 1000 * x[1:]])
    assert torch.equal(product(x)[0], product(x[:1])[0])
    assert torch.equal(product(x)[0], product(beside_large)[0])


@pytest.fixture(params=["compiled", "python"])
def loop(request, monkeypatch):
    if request.param == "python":
        monkeypatch.setattr(bilmo.net.kernels.int8, "compiled", lambda steps: steps)


@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("rows", [(5, 4, 4, 1), (1,) * 9], ids=str)
def test_a_layer_stays_near_what_it_gave_in_float32(loop, project, rows):
    torch.manual_seed(0)
    cell = Cell(CellConfig(cells=48 if project else 32, project=project, projection_clip=0.3 if project else None), 32)
    steps, x = Steps(rows), torch.randn(sum(rows), 32)
    state = tuple(0.3 * torch.randn(rows[0], width) for width in ((32, 48) if project else (32, 32)))
    with torch.no_grad():
        expected = cell(x, steps, state)
        found = cell.prepared("int8")(x, steps, state)
    for a, b in zip((found[0], *found[1]), (expected[0], *expected[1]), strict=True):
        assert torch.cosine_similarity(a, b).min() > 0.998
        assert not torch.equal(a, b)


def network(**cell):
    config = bilmo.BiLMConfig(
        words=WordsConfig(chars=CharsConfig(width=4, filters=((1, 8), (2, 8)), highways=1)),
        cell=CellConfig(**cell),
        width=8,
    )
    return bilmo.BiLM(config)


def test_where_torch_lacks_the_operators_int8_is_refused_with_what_to_do(monkeypatch):
    monkeypatch.setattr(bilmo.net.kernels.int8, "_pack", lambda weight: torch.ops.quantized.no_such_operator(weight))
    _has_int8.cache_clear()
    try:
        with pytest.raises(ConfigError, match=r"precision int8 needs operators .* Use precision float32"):
            network(cells=24).prepared("int8")
    finally:
        _has_int8.cache_clear()


def test_operators_that_overflow_are_not_used(monkeypatch):
    plain = bilmo.net.kernels.int8.times
    monkeypatch.setattr(
        bilmo.net.kernels.int8, "times", lambda x, weight: (plain(x, weight)[0] * 0.9, plain(x, weight)[1])
    )
    _has_int8.cache_clear()
    assert not _has_int8()
    _has_int8.cache_clear()


def test_int8_is_for_an_lstm():
    with pytest.raises(ConfigError, match="precision int8 needs LSTM cells; the cells of this model are gru"):
        network(kind="gru", cells=8, project=False, cell_clip=None, projection_clip=None).prepared("int8")

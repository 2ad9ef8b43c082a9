"""A state under flat names and back, and what is done with its rows."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bilmo.errors import WeightsError
from bilmo.net.state import State

from strategies import configs, random_bilm, seeds


@st.composite
def states(draw, most=5):
    """A random state of a small network of any kind, of one row or more."""
    zeros = random_bilm(draw(configs()), 0).zero_state(draw(st.integers(1, most))).named()
    generator = torch.Generator().manual_seed(draw(seeds()))
    return State.from_named({name: torch.randn(part.shape, generator=generator) for name, part in zeros.items()})


def same(a: State, b: State) -> bool:
    mine, other = a.named(), b.named()
    return list(mine) == list(other) and all(torch.equal(mine[name], other[name]) for name in mine)


@settings(max_examples=30)
@given(states(), st.data())
def test_names_give_the_same_state_back_in_any_order(state, data):
    names = data.draw(st.permutations(list(state.named())))
    assert same(State.from_named({name: state.named()[name] for name in names}), state)


def test_names_are_direction_layer_and_part():
    h, c = torch.zeros(2, 3), torch.zeros(2, 5)
    state = State({"forward": [(h, c), (h, c)], "backward": [(h,)]})
    expected = ["forward.0.h", "forward.0.c", "forward.1.h", "forward.1.c", "backward.0.h"]
    assert list(state.named()) == expected
    assert state.named()["forward.1.c"] is c


@pytest.mark.parametrize("name", ["forward.0.0", "ahead.0.h", "forward.1.h", "forward.0.c", "", "forward.0.h.x"])
def test_a_name_that_belongs_to_no_state_is_refused(name):
    with pytest.raises(WeightsError, match=r"named like forward\.0\.h and backward\.1\.c; found"):
        State.from_named({name: torch.zeros(1, 2)})
    with pytest.raises(WeightsError, match="found nothing"):
        State.from_named({})


@settings(max_examples=20)
@given(states(most=1), st.integers(1, 4))
def test_one_row_for_many(one, rows):
    many = one.expand(rows)
    assert many.rows == rows
    assert all(same(many.select(torch.tensor([row])), one) for row in range(rows))


@settings(max_examples=20)
@given(states(), st.data())
def test_rows_are_selected_and_put_first(state, data):
    order = torch.tensor(data.draw(st.permutations(range(state.rows))))
    moved = state.select(order)
    assert same(moved.select(torch.argsort(order)), state)
    few = moved.select(torch.arange(data.draw(st.integers(1, state.rows))))
    found = state.replace_first(few)
    assert found.rows == state.rows
    for name, part in found.named().items():
        assert torch.equal(part, torch.cat([few.named()[name], state.named()[name][few.rows :]]))
    assert same(few.replace_first(state), state.select(torch.arange(few.rows)))


def test_detached_and_moved():
    state = State({"forward": [(torch.zeros(1, 2, requires_grad=True),)]})
    assert not state.detach().named()["forward.0.h"].requires_grad
    assert state.to(torch.device("meta")).named()["forward.0.h"].is_meta

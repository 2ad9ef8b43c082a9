"""The cost model: counted work, sums over a network against a simulation, and the command."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilmo.ids.vocab import MARKS, Vocab
from bilmo.training import recipe as recipes
from bilmo.training.build import ModelPlan
from bilmo.training.plan.plan import Machine, all_reduce, most_machines, plan, simulated_all_reduce
from bilmo.training.plan.work import distinct, work

FAST = Machine(products=1e12, memory=1e11)


@pytest.mark.parametrize("name", ["tiny", "novel", "small", "original"])
def test_the_parameters_are_those_of_the_network(name):
    recipe = recipes.read(name)
    vocab = 900
    config = recipe.network.config(vocab, characters=None, given=None)
    words = Vocab((*MARKS, *(f"w{k}" for k in range(vocab - len(MARKS)))))
    assert work(recipe, vocab).parameters == ModelPlan(config, words, None, None).parameters()


def test_the_operations_of_a_layer_are_counted_as_by_hand():
    recipe = recipes.read("small", {"softmax": "sampled"})
    more = recipes.read("small", {"softmax": "sampled", "layers": 3})
    one, two = work(recipe, 50_000), work(more, 50_000)
    # A layer: 4 gates of 1024 cells over 128 inputs and 128 outputs, and a projection; 2 operations, 3 products each.
    positions = 2 * one.words
    assert two.products + two.recurrent - one.products - one.recurrent == pytest.approx(
        positions * 6 * (4 * 1024 * 256 + 1024 * 128), rel=1e-3
    )


def test_distinct_words_are_counted_exactly_for_small_numbers():
    shares = [1 / (k + 2.7) for k in range(1, 4)]
    total = sum(shares)
    expected = 0.0
    for draw in itertools.product(range(3), repeat=4):
        chance = 1.0
        for k in draw:
            chance *= shares[k] / total
        expected += chance * len(set(draw))
    assert distinct(4, 3) == pytest.approx(expected)


@given(
    st.integers(2, 40),
    st.floats(1e3, 1e9),
    st.floats(0, 1e-3),
    st.lists(st.floats(1e8, 1e10), min_size=2, max_size=2),
    st.integers(1, 8),
)
def test_the_time_of_a_sum_is_that_of_a_simulation(world, size, latency, rates, each):
    network, within = sorted(rates)
    machine = Machine(1, 1, network=network, within=within, latency=latency, processes=each)
    links = [within if (k + 1) % each and k + 1 < world else network for k in range(world)]
    if world <= each:
        links = [within] * world
    formula = all_reduce(size, 1, machine, world)
    simulated = simulated_all_reduce(size, links, latency)
    assert simulated == pytest.approx(formula, rel=0.2) or simulated <= formula
    if len(set(links)) == 1:  # the formula is exact if all links are the same
        assert simulated == pytest.approx(formula)


def test_more_machines_are_faster_and_less_efficient():
    recipe = recipes.read("original", {"batch": 40_960})
    found = [plan(recipe, 1e9, FAST, machines=n, vocab=793_471) for n in (1, 2, 4, 8, 16)]
    assert all(a.seconds > b.seconds for a, b in itertools.pairwise(found))
    assert all(a.efficiency > b.efficiency for a, b in itertools.pairwise(found))
    assert found[0].efficiency == 1 and found[0].communication == 0
    steps = found[4].seconds / found[4].step
    assert steps == pytest.approx(10 * 1.04e9 / found[4].work.words)
    most = most_machines(recipe, 1e9, FAST)
    alone = found[0].seconds
    for number, pays in ((most, True), (most + 1, False)):
        assert (alone / (plan(recipe, 1e9, FAST, machines=number).seconds * number) >= 0.49) is pays


def test_the_command_says_what_it_assumes_and_refuses_more_processes_than_rows(run):
    given = ("plan", "--words", "1e9", "--recipe", "original", "--gpus", "8")
    done = run(*given, "--machines", "16", "--tflops", "10")
    assert done.code == 0 and "assumed: 10 TFLOP/s (--tflops) and 1000 GB/s" in done.err
    assert done.out.splitlines()[-1].split()[:2] == ["16", "128"] and "days" in done.out
    found = json.loads(run(*given, "--machines", "2", "--json").out)
    assert [row["processes"] for row in found["plans"]] == [8, 16]
    refused = run(*given, "--machines", "17")
    assert refused.code == 1 and "bilmo: 136 processes share 128 rows of a step; each needs one" in refused.err


def test_the_rates_of_this_machine_are_measured(run, monkeypatch):
    monkeypatch.setattr("bilmo.training.plan.measure.product_rate", lambda device: 5e10)
    monkeypatch.setattr("bilmo.training.plan.measure.memory_rate", lambda device: 2e10)
    done = run("plan", "--words", "1e6", "--recipe", "novel")
    assert done.code == 0 and "0.05 TFLOP/s, 20 GB/s of memory" in done.out

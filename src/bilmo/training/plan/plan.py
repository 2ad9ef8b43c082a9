"""How long a training run takes on a number of machines: a cost model, fitted to measured steps.

The time of a step is the sum of three times: its matrix products at the rate of the machine, the update of all
parameters at the rate of its memory, and the sum of the gradients over the network. The rest of a step (gates,
activations, sorting rows) is covered by the two factors that `benchmarks/plan.py` fits.

Knows: the work of a step. Blind to: how machines are measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from bilmo.errors import ConfigError
from bilmo.training.plan.work import FLOAT, KEPT, WORDS_PER_SENTENCE, Work, work
from bilmo.training.recipe import Recipe

DAY = 24 * 3600
PROGRAM = 0.35e9
"""Bytes of a process that has imported torch."""
PAYS = 0.5
"""More machines are worth it while each is at least this fast, compared with a single machine."""
MOST_MACHINES = 4096


@dataclass(frozen=True)
class Machine:
    """The speed of one process, and of the network between processes."""

    products: float
    """Operations per second in large matrix products of float32."""
    memory: float
    """Bytes per second."""
    network: float = 1.25e9
    """Bytes per second between two machines, in each direction."""
    within: float = 5e9
    """Bytes per second between two processes of one machine."""
    latency: float = 50e-6
    """Seconds until a message arrives at the next process."""
    processes: int = 1
    """Of one machine, each with these rates."""


@dataclass(frozen=True)
class Factors:
    """Measured time of a step against the time that the rates of a machine allow."""

    products: float
    update: float


FACTORS = Factors(products=1.49, update=2.95)
"""Fitted by `benchmarks/plan.py --cpu-time` on 2026-11-18, on one thread of an AMD EPYC at 88 GFLOP/s and 39 GB/s."""


@dataclass(frozen=True)
class Plan:
    """A run on a number of machines."""

    machines: int
    processes: int
    step: float
    """Seconds."""
    communication: float
    """Seconds of these for the sum of the gradients."""
    words_per_second: float
    efficiency: float
    """Words per second, divided by those of one process times the number of processes."""
    seconds: float
    """Of the whole run, without evaluations."""
    work: Work

    @property
    def memory(self) -> float:
        """Bytes of one process."""
        return self.work.memory + PROGRAM


def plan(
    recipe: Recipe,
    words: float,
    machine: Machine,
    *,
    machines: int = 1,
    vocab: int | None = None,
    factors: Factors = FACTORS,
) -> Plan:
    """A run of the recipe on a text with this number of words."""
    train = recipe.train
    if train.minutes is not None:
        raise ConfigError("the recipe says how many minutes to train; a plan needs epochs")
    size = vocab or vocabulary(recipe, words)
    world = machines * machine.processes
    if world > rows(recipe):
        raise ConfigError(
            f"{world} processes share {rows(recipe)} rows of a step; each needs one. Use fewer machines, or a larger "
            f"batch than {train.batch} words."
        )
    step, communication, done = _step(recipe, size, machine, world, factors)
    one, _, _ = _step(recipe, size, machine, 1, factors)
    all_words = train.epochs * words * (1 + 1 / WORDS_PER_SENTENCE)
    return Plan(
        machines=machines,
        processes=world,
        step=step,
        communication=communication,
        words_per_second=done.words / step,
        efficiency=one / (world * step),
        seconds=all_words / done.words * step,
        work=done,
    )


def most_machines(recipe: Recipe, words: float, machine: Machine, factors: Factors = FACTORS) -> int:
    """The largest number of machines at which each is still at least half as fast as a single machine."""
    size, most = vocabulary(recipe, words), 1
    alone, _, _ = _step(recipe, size, machine, machine.processes, factors)
    for machines in range(2, min(MOST_MACHINES, rows(recipe) // machine.processes) + 1):
        step, _, _ = _step(recipe, size, machine, machines * machine.processes, factors)
        if alone / (step * machines) >= PAYS:
            most = machines
        elif machines > 2 * most + 8:
            break
    return most


def disk(recipe: Recipe, done: Work, words: float) -> float:
    """Bytes of the model folder: ids and ends of sentences, the checkpoint, and the best model."""
    numbers = KEPT[recipe.train.optimizer] * done.parameters  # of the checkpoint without gradients, and of the model
    return words * (FLOAT + 8 / WORDS_PER_SENTENCE) + FLOAT * numbers


def rows(recipe: Recipe) -> int:
    """Rows of a step, of which each process needs one."""
    train = recipe.train
    return max(1, round(train.batch / (train.window if train.context != "sentences" else WORDS_PER_SENTENCE + 1)))


def vocabulary(recipe: Recipe, words: float) -> int:
    """The words that are predicted: those of the recipe, or as many as such a text has."""
    found = int(40 * words**0.5)  # Heaps' law
    return min(found, recipe.text.vocab_size or found)


@lru_cache(maxsize=4096)
def _step(recipe: Recipe, vocab: int, machine: Machine, world: int, factors: Factors) -> tuple[float, float, Work]:
    done = work(recipe, vocab, world)
    communication = all_reduce(done.summed_bytes, done.messages, machine, world)
    return computing(done, machine, factors) + communication, communication, done


def computing(done: Work, machine: Machine, factors: Factors = FACTORS) -> float:
    """Seconds of a step without communication."""
    recurrent = max(done.recurrent / machine.products, done.recurrent_bytes / machine.memory)
    products = done.products / machine.products + recurrent
    return factors.products * products + factors.update * done.update_bytes / machine.memory


def all_reduce(size: float, messages: int, machine: Machine, world: int) -> float:
    """Seconds of the sums of a step: in a ring, each process sends almost twice all bytes, in 2 (n - 1) rounds."""
    if world == 1:
        return 0.0
    slowest = machine.within if world <= machine.processes else min(machine.network, machine.within)
    return 2 * (world - 1) * (size / world / slowest + messages * machine.latency)


def simulated_all_reduce(size: float, links: Sequence[float], latency: float) -> float:
    """The same for one message, message by message: process k sends to the next at `links[k]` bytes per second."""
    world = len(links)
    ready = [0.0] * world
    """When each process has what it sends next."""
    for _ in range(2 * (world - 1)):
        sent = [ready[k] + size / world / links[k] for k in range(world)]
        # A round ends when a process has sent its part and has received that of the process before it.
        ready = [max(sent[k], sent[k - 1] + latency) for k in range(world)]
    return max(ready)

"""The processes that train one model together, as torchrun starts them: who this one is, and what they agree on.

A process that was not started by torchrun, or is the only one, is `ALONE`: every function then returns at once.

Knows: torch.distributed, JSON. Blind to: models, text, what is summed.
"""

from __future__ import annotations

import json
import os
import platform
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import TCPStore  # type: ignore[attr-defined]

from bilmo.errors import BilmoError, ConfigError, ReportedElsewhere

Result = TypeVar("Result")
STEP_TIMEOUT = timedelta(minutes=30)
"""How long a process waits for the others within a step; after that, one of them is considered lost."""
POLL_SECONDS = 0.02
PATIENCE = timedelta(days=30)
"""How long it waits before the first step, while one process reads the text."""


@dataclass(frozen=True)
class Processes:
    """Who this process is among those that train together."""

    rank: int = 0
    world: int = 1
    """Number of processes."""
    patient: Any = None
    """The group for whatever may take long."""

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files."""
        return self.rank == 0

    @property
    def alone(self) -> bool:
        """Whether this is the only process."""
        return self.world == 1

    @property
    def name(self) -> str:
        """How messages call this process."""
        return f"process {self.rank} of {self.world} ({platform.node()})"

    def device(self, name: str) -> str:
        """The device of this process: its own GPU, if GPUs are used and none was named by number."""
        if self.alone or not (name == "cuda" or (name == "auto" and torch.cuda.is_available())):
            return name
        return f"cuda:{os.environ.get('LOCAL_RANK', '0')}"

    def rows(self, number: int) -> slice:
        """The rows of this process, of a step with this number of rows; none if there are too few."""
        return slice(self.rank, number, self.world)

    def sum(self, values: Tensor) -> Tensor:
        """The sum of a tensor over all processes, in place."""
        if not self.alone:
            with self.talking():
                dist.all_reduce(values)
        return values

    def total(self, value: float) -> float:
        """The sum of a number over all processes."""
        return value if self.alone else float(self.sum(torch.tensor(value, dtype=torch.float64)))

    def of_first(self, value: float) -> float:
        """The number that the first process has."""
        return self.total(value if self.first else 0.0)

    def on_all(self, function: Callable[[], Result]) -> Result:
        """Call a function on every process. An error on one of them is an error on all; one of them reports it."""
        if self.alone:
            return function()
        own: BilmoError | OSError | None = None
        try:
            result = function()
        except (BilmoError, OSError) as error:
            own = error
        said = self._gathered(None if own is None else str(own))
        failed = [rank for rank, message in enumerate(said) if message is not None]
        if not failed:
            return result
        if failed[0] != self.rank:
            raise ReportedElsewhere(f"process {failed[0]} of {self.world}: {said[failed[0]]}")
        assert own is not None
        raise own if self.first else BilmoError(f"{self.name}: {own}")

    def on_first(self, function: Callable[[], Result]) -> Result | None:
        """Call a function on the first process, while the others wait; an error is an error on all."""
        return self.on_all(function if self.first else lambda: None)

    def fail(self, error: BilmoError) -> BilmoError:
        """An error that occurs on all processes, to be raised: only the first one reports it."""
        return error if self.first else ReportedElsewhere(str(error))

    def agree(self, values: Mapping[str, Any]) -> None:
        """Refuse to continue unless these values, mappings in mappings, are the same on all processes."""
        if self.alone:
            return
        each = [dict(_flat(found)) for found in self._gathered({"process": self.name, "values": values})]
        wrong = next((found for found in each if _without_process(found) != _without_process(each[0])), None)
        if wrong is None:
            return
        names = [name for name in dict.fromkeys((*each[0], *wrong)) if name != "process"]
        lines = [
            f"  {name.removeprefix('values.')} is {_shown(wrong.get(name))}, and {_shown(each[0].get(name))} there"
            for name in names
            if wrong.get(name) != each[0].get(name)
        ]
        message = "\n".join(
            [
                f"{wrong['process']} was started with other settings or inputs than {each[0]['process']}:",
                *lines,
                "Start all processes with the same command, text, recipe and versions.",
            ]
        )
        raise self.fail(ConfigError(message))

    def _gathered(self, value: Any) -> list[Any]:
        """The value that each process has; it must be one that JSON can hold."""
        own = torch.frombuffer(bytearray(json.dumps(value), "utf-8"), dtype=torch.uint8)
        with self.talking():
            sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.world)]
            dist.all_gather(sizes, torch.tensor([len(own)]), group=self.patient)
            longest = max(int(size) for size in sizes)
            padded = torch.zeros(longest, dtype=torch.uint8)
            padded[: len(own)] = own
            parts = [torch.zeros_like(padded) for _ in range(self.world)]
            dist.all_gather(parts, padded, group=self.patient)
        return [json.loads(bytes(part[: int(size)].tolist())) for part, size in zip(parts, sizes, strict=True)]

    @contextmanager
    def talking(self) -> Iterator[None]:
        """Within it, a connection that is lost is an error that names it."""
        try:
            yield
        except RuntimeError as error:
            raise BilmoError(
                f"{self.name}: another process has ended, or the connection to it was lost ({_why(error)}). Run the "
                "same command again, or let torchrun do so (--max-restarts 3): the run resumes from its checkpoint."
            ) from error


ALONE = Processes()


def under_torchrun() -> bool:
    """Whether this is one of several processes that torchrun, or something like it, has started."""
    if not {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys():
        return False
    return int(os.environ["WORLD_SIZE"]) > 1


def is_first() -> bool:
    """Whether this is the process that writes files and talks to the user."""
    return not under_torchrun() or os.environ["RANK"] == "0"


@contextmanager
def joined() -> Iterator[Processes]:
    """The processes that were started together, connected; `ALONE` without torchrun."""
    if not under_torchrun():
        yield ALONE
        return
    ours = not dist.is_initialized()
    if ours:
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        try:
            rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            dist.init_process_group(
                backend, store=_store(rank, world), rank=rank, world_size=world, timeout=STEP_TIMEOUT
            )
        except (RuntimeError, ValueError) as error:
            where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
            raise BilmoError(
                f"process {os.environ['RANK']} of {os.environ['WORLD_SIZE']} cannot reach the others through {where} "
                f"({_why(error)}). Check that this address and all machines can be reached from each other."
            ) from None
    try:
        yield Processes(dist.get_rank(), dist.get_world_size(), dist.new_group(backend="gloo", timeout=PATIENCE))
    finally:
        if ours:
            dist.destroy_process_group()


def _store(rank: int, world: int) -> Store:
    """Where processes find the addresses of each other: a part of torchrun's store that is only for these processes.

    torchrun keeps its store when it starts processes again, and with it the addresses of processes that have ended. So
    the first process makes a new name, and gives it to every other process that shows, by a number of its own, that it
    is there now.
    """
    hosted = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"  # by torchrun; else by the first process
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = TCPStore(address, port, world, is_master=rank == 0 and not hosted, timeout=STEP_TIMEOUT)
    own = secrets.token_hex(8)
    if rank > 0:
        store.set(f"bilmo/{rank}", own)
        name = store.get(f"bilmo/{own}").decode()  # waits for it
        store.set(f"bilmo/{name}/{rank}", own)
        return PrefixStore(name, store)
    until = time.monotonic() + STEP_TIMEOUT.total_seconds()
    while absent := [other for other in range(1, world) if not store.check([f"bilmo/{own}/{other}"])]:
        if time.monotonic() > until:
            raise RuntimeError(f"process {absent[0]} did not connect")
        for other in absent:
            if store.check([f"bilmo/{other}"]):  # its number, or that of one that has ended
                store.set(f"bilmo/{store.get(f'bilmo/{other}').decode()}", own)
        time.sleep(POLL_SECONDS)
    return PrefixStore(own, store)


def _why(error: RuntimeError | ValueError) -> str:
    """The main part of torch's message."""
    first = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return re.sub(r"\[/[^\]]*\] ", "", first).partition(". ")[0]


def _flat(values: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Each value of nested mappings by its full name."""
    if not isinstance(values, dict):
        yield name, values
        return
    for key, value in values.items():
        yield from _flat(value, f"{name}.{key}" if name else key)


def _without_process(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != "process"}


def _shown(value: Any) -> str:
    return "not set" if value is None else repr(value)

"""Sums the gradients of all processes, while the backward pass still runs.

Gradients are summed in buckets, in the same order on every process: the softmax first, whose gradient is there before
the backward pass begins, then the recurrent layers from the top, then the word encoder. A bucket is sent as soon as all
its gradients, and those of the buckets before, are there.

Knows: torch.distributed. Blind to: how gradients are computed and used.
"""

# V words of the vocabulary, R rows of a table that have a gradient, D width

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from bilmo.training.distributed.processes import Processes

MOST_ROWS = 0.7
"""Share of a table's rows above which the whole table is sent: gathering rows has its cost too."""


class SummedGradients:
    """Makes the gradients of parameters those of all processes together, once for each backward pass.

    A parameter must have a gradient on all processes, or on none.
    """

    def __init__(self, buckets: Sequence[Sequence[nn.Parameter]], processes: Processes) -> None:
        self._buckets, self._processes = buckets, processes
        self._lock = Lock()  # the two directions have their gradients at the same time
        self._missing: list[int] = []
        self._next = len(buckets)
        self._rows: Mapping[nn.Parameter, Tensor] = {}
        self._sent: list[tuple[Any, Tensor, list[nn.Parameter]]] = []
        self.bytes = 0
        """What each process gave to be summed in the last backward pass."""
        for number, bucket in enumerate(buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(partial(self._ready, number))

    def begin(self, rows: Mapping[nn.Parameter, Tensor]) -> None:
        """Before a backward pass; `rows` (R,) of tables whose other rows have no gradient on any process."""
        self._rows = {table: some for table, some in rows.items() if len(some) < MOST_ROWS * len(table)}
        self._missing = [len(bucket) for bucket in self._buckets]
        self._next, self._sent, self.bytes = 0, [], 0

    def finish(self) -> None:
        """After the backward pass: send what is left, and wait until all gradients are summed."""
        with self._processes.talking():
            while self._next < len(self._buckets):
                self._send()
            for work, values, parameters in self._sent:
                work.wait()
                self._put_back(values, parameters)
        self._sent = []

    def _ready(self, number: int, _: Tensor) -> None:
        """One more gradient of a bucket is there."""
        with self._lock:
            self._missing[number] -= 1
            while self._next < len(self._buckets) and not self._missing[self._next]:
                self._send()

    def _send(self) -> None:
        """Begin to sum the next bucket."""
        parameters = [parameter for parameter in self._buckets[self._next] if parameter.grad is not None]
        self._next += 1
        if not parameters:  # those of the network, while only the softmax is trained
            return
        parts = [self._part(parameter).flatten() for parameter in parameters]
        values = parts[0] if len(parts) == 1 else torch.cat(parts)
        self.bytes += values.nbytes
        self._sent.append((dist.all_reduce(values, async_op=True), values, parameters))

    def _part(self, parameter: nn.Parameter) -> Tensor:
        """The gradient, or its rows (R, D) that are not 0."""
        assert parameter.grad is not None
        rows = self._rows.get(parameter)
        return parameter.grad if rows is None else parameter.grad.index_select(0, rows)

    def _put_back(self, values: Tensor, parameters: list[nn.Parameter]) -> None:
        at = 0
        for parameter in parameters:
            gradient, rows = parameter.grad, self._rows.get(parameter)
            assert gradient is not None
            number = len(gradient) if rows is None else len(rows)
            size = gradient.numel() // len(gradient) * number
            summed = values[at : at + size].view(number, *gradient.shape[1:])
            at += size
            if rows is not None:
                gradient.index_copy_(0, rows, summed)
            elif summed.data_ptr() != gradient.data_ptr():
                gradient.copy_(summed)

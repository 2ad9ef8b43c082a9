"""The two directions side by side: a thread for each, with its share of the processor.

Two threads on two small products beat two threads on one.

Knows: torch's threads and its autograd. Blind to: what is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from threading import current_thread, local
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

Result = TypeVar("Result")

NAME = "bilmo-worker"


def side_by_side(tasks: list[Callable[[], Result]]) -> list[Result]:
    """Run tasks at the same time where there are cores for it; results in their order."""
    here = torch.get_num_threads()
    threads: int = getattr(_spared, "threads", here)
    nested = current_thread().name.startswith(NAME)  # a worker that waits for workers may wait forever
    if len(tasks) == 1 or threads == 1 or nested:
        return [task() for task in tasks]
    # Whether gradients are wanted is a setting of each thread, so it is carried over.
    inference, grad = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    def as_here(task: Callable[[], Result]) -> Result:
        # Every time anew: the number of threads is partly a setting of the thread, partly of the whole process.
        torch.set_num_threads(max(1, threads // len(tasks)))
        with torch.inference_mode(inference), torch.set_grad_enabled(grad and not inference):
            return task()

    try:
        return [future.result() for future in [_pool(len(tasks)).submit(as_here, task) for task in tasks]]
    finally:
        torch.set_num_threads(here)


_spared = local()


@contextmanager
def sparing() -> Iterator[None]:
    """Within it the calling thread computes alone: all threads are for what runs side by side.

    The threads that torch starts for a single operator go on spinning for a while after it, on cores that the
    tasks need: with two cores that took two fifths of all processor time for short sentences.
    """
    threads = torch.get_num_threads()
    _spared.threads = threads
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        del _spared.threads


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix=NAME)


def trained_side_by_side(tasks: list[Callable[[Tensor], Tensor]], inputs: list[Tensor]) -> list[Tensor]:
    """Each task on its own input, forward and later backward side by side; tasks must share no parameter."""
    if not torch.is_grad_enabled():
        return side_by_side([partial(task, x) for task, x in zip(tasks, inputs, strict=True)])
    # Outputs of a function have gradients only where an input has, and what is trained may be inside alone.
    inputs = [x if x.requires_grad else x.detach().requires_grad_() for x in inputs]
    return list(_SideBySide.apply(tasks, *inputs))  # type: ignore[no-untyped-call]


class _SideBySide(Function):
    """Keeps the graph of each task to itself, so that backward can go through all of them at once.

    Parameters inside a task get their gradients directly, as they would by `backward`.
    """

    @staticmethod
    def forward(ctx: Any, tasks: list[Callable[[Tensor], Tensor]], *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.inputs = [x.detach().requires_grad_() for x in inputs]
        with torch.enable_grad():
            ctx.outputs = side_by_side([partial(task, x) for task, x in zip(tasks, ctx.inputs, strict=True)])
        return tuple(out.detach() for out in ctx.outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """What reaches each input."""
        pairs = zip(ctx.outputs, gradients, strict=True)
        side_by_side([partial(torch.autograd.backward, out, gradient) for out, gradient in pairs])
        reached = [x.grad for x in ctx.inputs]
        ctx.inputs = ctx.outputs = None  # nothing is left that would keep the graphs alive
        return (None, *reached)

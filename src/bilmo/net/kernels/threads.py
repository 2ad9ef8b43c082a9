"""Independent tasks side by side: for small products, one thread per task is faster than several threads per product.

Any number of threads may call these functions at the same time, and a forked process may continue to.

Knows: torch's threads and its autograd. Blind to: what is computed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from functools import partial, reduce
from threading import Lock, current_thread, local
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

Result = TypeVar("Result")

WORKER = "bilmo-worker"
"""How the names of our threads begin."""


class _Threads:
    """Our threads, and how many threads torch had before we changed that."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.pools: dict[int, ThreadPoolExecutor] = {}
        self.callers = 0
        """Threads that are inside `caller_threads` now."""
        self.setting = 1
        """torch's thread count before the first caller changed it."""
        self.here = local()
        """`here.setting`, while the calling thread is one of them."""


_threads = _Threads()


def _after_fork() -> None:
    """A forked process has none of its parent's threads: neither ours nor those of OpenMP, for which it would wait.

    A process that never used our threads keeps its setting.
    """
    global _threads
    used = bool(_threads.pools)
    _threads = _Threads()
    if used:
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def caller_threads(number: int | None = None) -> Iterator[int]:
    """Limit torch to `number` threads in this thread; yields the user's own setting.

    One thread for the caller leaves the others to what runs side by side. Otherwise the threads that torch starts for
    a single operator keep spinning for a while after it, on cores that the tasks need: on two cores, with short
    sentences, they cost 40 % of CPU time.

    Torch keeps the number partly for each thread and partly for the whole process. So a second caller cannot ask
    torch for the user's number: the first one may have changed it for the moment.
    """
    threads = _threads
    if hasattr(threads.here, "setting"):  # within another one
        yield threads.here.setting
        return
    with threads.lock:
        if not threads.callers:
            threads.setting = torch.get_num_threads()
        threads.callers += 1
        threads.here.setting = threads.setting
    try:
        if number is not None:
            torch.set_num_threads(number)
        yield threads.here.setting
    finally:
        torch.set_num_threads(threads.here.setting)
        del threads.here.setting
        with threads.lock:
            threads.callers -= 1


def side_by_side(tasks: Sequence[Callable[[], Result]]) -> list[Result]:
    """Run tasks at the same time where there are cores for it; results in their order."""
    nested = current_thread().name.startswith(WORKER)  # a worker that waits for workers could wait forever
    if len(tasks) == 1 or nested:
        return [task() for task in tasks]
    with caller_threads() as threads:
        if threads == 1:
            return [task() for task in tasks]
        here = torch.get_num_threads()
        # These are settings of each thread, so the caller's are carried over.
        inference, grad = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
        autocast = {kind: torch.get_autocast_dtype(kind) for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)}

        def as_here(task: Callable[[], Result]) -> Result:
            # Set again for every task, because the number is partly a setting of the whole process.
            torch.set_num_threads(max(1, threads // len(tasks)))
            with ExitStack() as settings:
                settings.enter_context(torch.inference_mode(inference))
                settings.enter_context(torch.set_grad_enabled(grad and not inference))
                for kind, dtype in autocast.items():
                    settings.enter_context(torch.autocast(kind, dtype))
                return task()

        futures: list[Future[Result]] = []
        try:
            with _threads.lock:
                if len(tasks) not in _threads.pools:
                    _threads.pools[len(tasks)] = ThreadPoolExecutor(len(tasks), WORKER)
                pool = _threads.pools[len(tasks)]
            try:
                for task in tasks:
                    futures.append(pool.submit(as_here, task))
            except RuntimeError as error:
                if "shutdown" not in str(error):
                    raise
                # The main thread has ended, so pools take no more tasks.
                rest = [as_here(task) for task in tasks[len(futures) :]]
            else:
                rest = []
            return [future.result() for future in futures] + rest
        finally:
            wait(futures)  # also when a task has failed: the others may still use the caller's tensors
            torch.set_num_threads(here)


def trained_side_by_side(tasks: Sequence[Callable[[Tensor], Tensor]], x: Tensor) -> list[Tensor]:
    """Each task on the same input, forward and later backward side by side; tasks must share no parameter."""
    # Outputs of a function have gradients only where an input has them, and perhaps only weights are trained.
    x = x if x.requires_grad else x.detach().requires_grad_()
    return list(_SideBySide.apply(tasks, x))  # type: ignore[no-untyped-call]


class _SideBySide(Function):
    """Keeps one graph for each task, so that backward can run through all of them at once.

    Parameters inside a task get their gradients directly, as `backward` gives them.
    """

    @staticmethod
    def forward(ctx: Any, tasks: Sequence[Callable[[Tensor], Tensor]], x: Tensor) -> tuple[Tensor, ...]:
        ctx.inputs = [x.detach().requires_grad_() for _ in tasks]
        with torch.enable_grad():
            ctx.outputs = side_by_side([partial(task, part) for task, part in zip(tasks, ctx.inputs, strict=True)])
        return tuple(out.detach() for out in ctx.outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient with respect to the input."""
        pairs = zip(ctx.outputs, gradients, strict=True)
        side_by_side([partial(torch.autograd.backward, out, gradient) for out, gradient in pairs])
        reached = [x.grad for x in ctx.inputs if x.grad is not None]
        ctx.inputs = ctx.outputs = None  # nothing is left that would keep the graphs alive
        return None, reduce(torch.add, reached)

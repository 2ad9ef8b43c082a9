"""The two directions side by side: a thread for each, with its share of the processor.

Two threads on two small products beat two threads on one.

Knows: torch's threads. Blind to: what is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import torch

Result = TypeVar("Result")


def side_by_side(tasks: list[Callable[[], Result]]) -> list[Result]:
    """Run tasks at the same time where there are cores for it; results in their order."""
    threads = torch.get_num_threads()
    if len(tasks) == 1 or threads == 1:
        return [task() for task in tasks]
    pool = _pool(len(tasks), max(1, threads // len(tasks)))
    results = [future.result() for future in [pool.submit(_inferring, task) for task in tasks]]
    torch.set_num_threads(threads)  # what a worker sets for itself is the default of threads yet to come
    return results


def _inferring(task: Callable[[], Result]) -> Result:
    with torch.inference_mode():  # which every thread has to say for itself
        return task()


@cache
def _pool(workers: int, threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="bilmo", initializer=lambda: torch.set_num_threads(threads))

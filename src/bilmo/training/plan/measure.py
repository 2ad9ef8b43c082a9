"""The rates of this machine that a plan needs, measured in about two seconds.

Knows: torch. Blind to: plans.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

PRODUCT, MEMORY = 1536, 1 << 25
"""Rows and columns of the matrices, and numbers in the vector (128 MB), that are used."""
REPEATS = 5
clock = time.perf_counter
"""A benchmark may count CPU time instead."""


def product_rate(device: torch.device) -> float:
    """Operations per second of a large matrix product in float32."""
    a, b = torch.randn(2, PRODUCT, PRODUCT, device=device)
    return 2 * PRODUCT**3 / _seconds(lambda: a @ b, device)


def memory_rate(device: torch.device) -> float:
    """Bytes per second of reading and writing a vector that no cache holds."""
    values = torch.zeros(MEMORY, device=device)
    return 2 * values.nbytes / _seconds(lambda: values.add_(1), device)


def _seconds(task: Callable[[], object], device: torch.device) -> float:
    """The shortest of several times; the first run is not counted."""
    times = []
    for _ in range(REPEATS + 1):
        began = clock()
        task()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(clock() - began)
    return min(times[1:])

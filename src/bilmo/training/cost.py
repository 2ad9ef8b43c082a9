"""The memory and time that a training run needs, and whether this machine has the memory.

Knows: the loop, the operating system. Blind to: files, who asks.
"""

from __future__ import annotations

import os
import sys
import time

from bilmo.errors import ConfigError
from bilmo.training.events import Cost
from bilmo.training.loop import EVALUATION_WORDS, Loop

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

MEMORY_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes; the unit in which the system reports memory."""
BYTES_PER_PARAMETER = 16
"""The parameter, its gradient, and two numbers that Adam keeps for it."""


def need_memory(parameters: int, settings: str) -> None:
    """Refuse a network that the machine cannot hold before it is made: trying it would take the machine down.

    settings: the names of those that make it smaller.
    """
    try:
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # the system does not say
        return
    needed = BYTES_PER_PARAMETER * parameters
    if needed > available:
        raise ConfigError(
            f"the network has {parameters:,} parameters. Training it takes {needed / 1e9:,.0f} GB of memory, but this "
            f"machine has {available / 1e9:,.0f} GB. Make it smaller: {settings}."
        )


def estimate(loop: Loop) -> Cost:
    """Try a step and a part of an evaluation, which changes nothing, and estimate the rest of the run."""
    recipe, progress = loop.recipe, loop.progress
    text = loop.text(progress.epoch)
    step = text[min(progress.step_in_epoch, len(text) - 1)]
    step_seconds = min(loop.try_step(step) for _ in range(2))  # the first one is slower
    memory = 0 if resource is None else MEMORY_UNIT * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if not progress.steps:  # the optimizer does not have its two numbers per parameter yet
        memory += sum(8 * parameter.numel() for parameter in loop.model.parameters())
    left = 1 - loop.share_done(len(text))
    if recipe.minutes is not None:
        return Cost(60 * recipe.minutes * left, memory)
    steps = len(text) * recipe.epochs * left
    return Cost(step_seconds * steps + evaluation_seconds(loop) * steps / loop.evaluation_interval(len(text)), memory)


def evaluation_seconds(loop: Loop) -> float:
    """How long an evaluation will take, measured on a tenth of one."""
    began = time.perf_counter()
    words = loop.held_out_loss(EVALUATION_WORDS // 10).words
    seconds = time.perf_counter() - began
    facts = loop.corpus.facts
    return seconds / words * min(EVALUATION_WORDS, facts.tokens["held_out"] + facts.sentences["held_out"])

"""One Embedder, one module and two tasks, used by many threads and processes at once; run by tests/test_shared_use.py.

    python shared_use.py KIND     KIND: threads, fork, spawn

It prints the number of results, and how many differ from those of one thread.
"""

from __future__ import annotations

import multiprocessing
import random
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import torch

import bilmo
from bilmo.embed import word_cache

import task_data

THREADS, PROCESSES, CALLS = 16, 4, 20
ALLOWED = 1e-6
SMALL: dict[str, Any] = {"hidden": 6, "epochs": 1}

Work = tuple[str, list[list[str]]]
"""What is used, and the sentences that it gets."""
used: dict[str, Callable[[list[list[str]]], list[Any]]] = {}
"""What the threads share; a forked process has it from its parent, a spawned one gets it once."""


def made() -> dict[str, Any]:
    """Everything that is shared, by name."""
    elmo = bilmo.Embedder(task_data.made(0))
    module = elmo.module(mix="weighted").eval()
    classifier = bilmo.Classifier(elmo, **SMALL).fit(*task_data.texts(20))
    tagger = bilmo.Tagger(elmo, **SMALL).fit(*task_data.sentences(20))
    return {"elmo": elmo, "module": module, "classifier": classifier, "tagger": tagger}


def use(things: dict[str, Any]) -> None:
    """Let this process use these things."""
    used["layers"] = things["elmo"].layers
    used["text"] = lambda some: [things["elmo"].embed(" ".join(sentence)).vectors for sentence in some]
    used["module"] = partial(through_module, things["module"])
    for name in ("classifier", "tagger"):
        used[name] = things[name].predict_proba


def through_module(module: Any, some: list[list[str]]) -> list[Any]:
    with torch.no_grad():
        vectors, mask = module(some)
    return [vectors.numpy(), mask.numpy()]


def result(work: Work) -> list[Any]:
    """One call, in any thread or process."""
    name, some = work
    answers = used[name](some)
    return [[np.asarray(part) for part in one] if isinstance(one, list) else np.asarray(one) for one in answers]


def differ(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return len(a) != len(b) or any(map(differ, a, b))
    return a.shape != b.shape or bool(np.abs(a.astype(float) - b.astype(float)).max(initial=0) > ALLOWED)


def main() -> None:
    kind = sys.argv[1]
    torch.set_num_threads(2 if kind == "threads" else 1)
    word_cache.CACHE_BYTES = 20_000  # so small that threads drop words that others are about to read
    draw = np.random.default_rng(0)
    words = [*task_data.COLOURS, *task_data.ANIMALS, *task_data.REST, *(f"w{n}" for n in range(2000))]
    things = made()
    use(things)
    work: list[Work] = [
        (name, [draw.choice(words, draw.integers(1, 12)).tolist() for _ in range(draw.integers(1, 9))])
        for name in used
        for _ in range(CALLS)
    ]
    random.Random(0).shuffle(work)
    expected = list(map(result, work))
    if kind == "threads":
        sys.setswitchinterval(1e-6)  # threads take turns as often as possible
        pool: Any = ThreadPoolExecutor(THREADS)
    else:
        context = multiprocessing.get_context(kind)
        # A forked process has the things already, with all that the parent did with them.
        start: dict[str, Any] = {} if kind == "fork" else {"initializer": use, "initargs": (things,)}
        pool = ProcessPoolExecutor(PROCESSES if kind == "fork" else 2, mp_context=context, **start)
    with pool:
        found = list(pool.map(result, work))
    print(len(found), sum(map(differ, found, expected)))


if __name__ == "__main__":
    main()

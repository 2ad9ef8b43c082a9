"""Embed with bilmo; run by embed.py."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
import torch

import bilmo
from bilmo.embed.embedder import Embedder


def main(model: str, task: str, out: str, precision: str = "float32") -> None:
    work = json.loads(Path(task).read_text(encoding="utf-8"))
    torch.set_num_threads(work["threads"])
    elmo = bilmo.load(model, start="zero", precision=precision)
    elmo.layers(work["warm_up"])
    one = work["batch"] == 1
    seconds = []
    for part in work["parts"]:
        began = time.perf_counter()
        vectors = layers(elmo, part, one)
        seconds.append(time.perf_counter() - began)
    began = time.perf_counter()
    layers(elmo, work["parts"][-1], one)  # every word is cached now, so only the recurrence remains
    recurrent = time.perf_counter() - began
    first = layers(elmo, work["parts"][0][: work["compared"]], one)
    kept = {f"v{k}": v for k, v in enumerate(vectors[: work["compared"]])}
    kept |= {f"first{k}": v for k, v in enumerate(first)}
    memory = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    np.savez(out, seconds=seconds, recurrent=recurrent, memory=memory, **kept)


def layers(elmo: Embedder, sentences: list[list[str]], one: bool) -> list[np.ndarray]:
    """All sentences in one call, or one call per sentence."""
    return [elmo.layers([s])[0] for s in sentences] if one else elmo.layers(sentences)


if __name__ == "__main__":
    main(*sys.argv[1:])

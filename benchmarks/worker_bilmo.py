"""Embeds with bilmo; run by embed.py."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch

import bilmo


def main(model: str, task: str, out: str) -> None:
    work = json.loads(Path(task).read_text(encoding="utf-8"))
    torch.set_num_threads(work["threads"])
    elmo = bilmo.load(model, start="zero")
    elmo.layers(work["warm_up"])
    seconds = []
    for part in work["parts"]:
        began = time.perf_counter()
        if work["batch"] == 1:
            vectors = [elmo.layers([sentence])[0] for sentence in part]
        else:
            vectors = elmo.layers(part)
        seconds.append(time.perf_counter() - began)
    np.savez(out, seconds=seconds, **{f"v{k}": v for k, v in enumerate(vectors[: work["compared"]])})


if __name__ == "__main__":
    main(*sys.argv[1:])

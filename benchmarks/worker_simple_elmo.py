"""Embed with simple_elmo, which is bilm-tf on TensorFlow 2; run by embed.py in the environment of simple_elmo.

It carries its state from batch to batch, so only the vectors of its first batch can be compared.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from pathlib import Path

os.environ |= {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}

import numpy as np
import tensorflow as tf


def main(model: str, task: str, out: str) -> None:
    work = json.loads(Path(task).read_text(encoding="utf-8"))
    tf.config.threading.set_intra_op_parallelism_threads(work["threads"])
    tf.config.threading.set_inter_op_parallelism_threads(1)
    logging.disable(logging.INFO)
    from simple_elmo import ElmoModel

    elmo = ElmoModel()
    elmo.load(model, max_batch_size=work["batch"])
    first = work["parts"][0][: min(work["batch"], work["compared"])]
    vectors = elmo.get_elmo_vectors(first, warmup=False, layers="all")  # (N, L+1, T, 2D)
    kept = {f"first{k}": vectors[k][:, : len(sentence)] for k, sentence in enumerate(first)}
    seconds = []
    for part in work["parts"]:
        began = time.perf_counter()
        elmo.get_elmo_vectors(part, warmup=False, layers="all")
        seconds.append(time.perf_counter() - began)
    np.savez(out, seconds=seconds, **kept)


if __name__ == "__main__":
    main(*sys.argv[1:])

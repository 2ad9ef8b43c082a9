"""Memory grows with the number of distinct words, and very little with the length of the text."""

import os
import sys
import tracemalloc

import bilmo.training.corpus
import bilmo.training.distributed.pieces
from bilmo.training.corpus import build
from program import started
from small_runs import write_text

MOST = 24 * 2**20
"""Bytes that a run may take for 95,000 more sentences: what must be known of each while an epoch is put in order
takes half of it."""


def peak(folder, text, model):
    """Peak memory in bytes of a run of a few steps, through the command line."""
    share = 2400 / (folder / text).stat().st_size  # of a pass; about ten steps
    process = started(folder, "train", text, "-o", model, "--recipe", "recipe.toml", "--epochs", str(share))
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.communicate() and process.returncode == 0
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def test_a_run_on_twenty_times_the_text_takes_little_more_memory(tmp_path):
    write_text(tmp_path, lines=5000)
    (tmp_path / "long.txt").write_bytes((tmp_path / "text.txt").read_bytes() * 20)
    assert peak(tmp_path, "long.txt", "b") - peak(tmp_path, "text.txt", "a") < MOST


def test_reading_twenty_times_the_text_takes_the_same_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(bilmo.training.corpus, "IDS_AT_ONCE", 1000)
    monkeypatch.setattr(bilmo.training.distributed.pieces, "PIECE", 10_000)
    line = "the cat sat on the mat number"
    peaks = []
    for times in (1, 20):
        tracemalloc.start()
        lines = (f"{line} {n % 500}" for n in range(1000 * times))
        build(lines, "spaces", tmp_path / str(times), held_out=0.1, seed=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 2**17

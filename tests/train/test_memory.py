"""Memory grows with the number of distinct words, not with the length of the text."""

import os
import sys

from small_runs import started, write_text

MOST = 64 * 2**20


def peak(folder, text, model):
    """Bytes that a run of a few steps had in use at most, through the command line."""
    command = ("train", text, "-o", model, "--recipe", "recipe.toml", "--epochs")
    steps = 20 * 60 * 2 / (folder / text).stat().st_size  # the share of a pass that about ten steps are
    process = started(folder, *command, str(steps))
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.communicate()
    process.communicate()
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def test_twenty_times_the_text_takes_no_more_memory_to_speak_of(tmp_path):
    write_text(tmp_path, lines=5000)
    (tmp_path / "long.txt").write_bytes((tmp_path / "text.txt").read_bytes() * 20)
    assert peak(tmp_path, "long.txt", "b") - peak(tmp_path, "text.txt", "a") < MOST

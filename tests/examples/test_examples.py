"""The example scripts run as a user starts them. keras_models.py needs Keras: tests_plug runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(script, *arguments):
    done = subprocess.run(
        [sys.executable, EXAMPLES / script, *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_scripts_are_short(script):
    if script.name != "demo.py":  # the program of `make demo`
        assert len(script.read_text(encoding="utf-8").splitlines()) < 80


def test_texts_are_classified():
    *epochs, last = run("classify_texts.py")
    losses = [float(line.split()[-1]) for line in epochs]
    assert losses[-1] < 0.8 * losses[0]
    assert last.startswith("accuracy on 40 other texts: ")
    assert float(last.split()[-1]) > 0.5  # guessing gives 0.25


def test_a_novel_gives_similar_names():
    first, *rows = run("chinese_novel.py")
    assert first == "words most similar to 李云:"
    names = [row.split("\t")[0].strip() for row in rows]
    assert len(names) == 9 and set(names[:2]) == {"王月", "陈山"}  # the other travellers, not the cooks

"""The example with three Keras models runs as a user starts it."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_three_models_are_trained_and_measured():
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "keras_models.py"],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if "accuracy" in line]
    assert [row.split("  ")[0] for row in rows] == ["weighted sum and words", "weighted sum", "fixed mean"]
    for row in rows:
        found = [float(value) for value in re.findall(r"\d\.\d\d", row)]
        assert len(found) == 4 and found[0] > 0.25  # better than one answer for all

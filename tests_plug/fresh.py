"""Python code in a process of its own, as another program would run it."""

import os
import subprocess
import sys
from pathlib import Path


def fresh(code: str, *arguments: object) -> str:
    """Run code in a new process with these arguments; returns what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        cwd=Path.cwd(),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout

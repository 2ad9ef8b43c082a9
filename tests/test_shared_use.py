"""16 threads, forked and spawned processes that share an Embedder, a module and tasks get the results of one thread."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shared_use import CALLS

HERE = Path(__file__).parent


@pytest.mark.parametrize("kind", ["threads", "fork", "spawn"])
def test_many_users_at_once_get_the_results_of_one(kind):
    if kind == "fork" and not hasattr(os, "fork"):
        pytest.skip("needs fork")
    command = [sys.executable, str(HERE / "shared_use.py"), kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == f"{5 * CALLS} 0\n", done.stderr

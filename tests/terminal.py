"""What a program shows on a terminal: a pseudo-terminal, read until the program ends."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path


def shown(folder: Path, *arguments: object) -> str:
    """Everything that `python ARGUMENTS...` writes in `folder`, where its output and errors are one terminal."""
    here, there = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    process = subprocess.Popen(
        [sys.executable, *map(str, arguments)], cwd=folder, stdout=there, stderr=there, stdin=there, env=environment
    )
    os.close(there)
    found = b""
    while True:
        try:
            some = os.read(here, 4096)
        except OSError:  # Linux reports the end like this
            break
        if not some:
            break
        found += some
    os.close(here)
    assert process.wait() == 0, found.decode(errors="replace")
    return found.decode(errors="replace")

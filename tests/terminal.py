"""Programs on a pseudo-terminal: what one shows until it ends, and one to type to."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path
from typing import Self


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


class Terminal:
    """A program that is typed to, such as a shell; it ends with the `with` block."""

    def __init__(self, *command: str, env: Mapping[str, str]) -> None:
        self._here, there = pty.openpty()
        self._process = subprocess.Popen(
            command,
            stdin=there,
            stdout=there,
            stderr=there,
            env=env,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(there)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._here)

    def send(self, keys: str) -> None:
        """Press keys."""
        os.write(self._here, keys.encode())

    def read_until(self, text: str, seconds: float = 60) -> str:
        """What is shown until `text` appears; it is an error if it does not."""
        found = ""
        while text not in found:
            ready, _, _ = select.select([self._here], [], [], seconds)
            assert ready, f"{text!r} was not shown: {found!r}"
            found += os.read(self._here, 4096).decode(errors="replace")
        return found

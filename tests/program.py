"""The program `bilmo` as a user runs it: `program` runs it in this process, `started` in a process of its own."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest.mock import patch

from bilmo.cli.app import main


@dataclass(frozen=True)
class Result:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


def program(folder: Path, *arguments: object, stdin: str | bytes = b"") -> Result:
    """Run `bilmo ARGUMENTS...` in `folder` and in this process.

    An exception that a user would see as a traceback is raised.
    """
    code = 0
    piped = io.TextIOWrapper(io.BytesIO(stdin.encode() if isinstance(stdin, str) else stdin))
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True, errors="backslashreplace")
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch.object(sys, "argv", ["bilmo", *map(str, arguments)]),
        patch.object(sys, "stdin", piped),
    ):
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Result(code, _text(out), _text(err))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def started(folder: Path, *arguments: object, threads: int = 1) -> subprocess.Popen[str]:
    """Start `bilmo ARGUMENTS...` in `folder` as a process of its own, with pipes for all three streams.

    Waiting threads sleep, because the tests share the processor cores.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "bilmo", *map(str, arguments)],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        # Tests that run in the background may ignore Ctrl-C; a child would inherit that.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )

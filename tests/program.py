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

SIGNALLED = """
import signal, sys
from importlib import import_module
from bilmo.cli.app import main

module, name, calls, number = sys.argv[1:5]
del sys.argv[1:5]
owner = import_module(module)
plain, left = getattr(owner, name), int(calls)

def counted(*given, **named):
    global left
    found = plain(*given, **named)
    left -= 1
    if left == 0:
        signal.raise_signal(int(number))
    return found

setattr(owner, name, counted)
main()
"""


@dataclass(frozen=True)
class Result:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class SignalAfter:
    """A signal that a process sends to itself when a function has returned for the n-th time.

    The same moment on every machine, however busy: a signal that a test sends may come before that moment, or when the
    process has already ended.
    """

    module: str
    function: str
    calls: int
    number: signal.Signals

    def arguments(self) -> list[str]:
        """The arguments of SIGNALLED."""
        return [self.module, self.function, str(self.calls), str(int(self.number))]


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


def started(
    folder: Path, *arguments: object, threads: int = 1, after: SignalAfter | None = None
) -> subprocess.Popen[str]:
    """Start `bilmo ARGUMENTS...` in `folder` as a process of its own, with pipes for all three streams.

    Waiting threads sleep, because the tests share the processor cores.
    after: when the process sends a signal to itself, and which.
    """
    command = ["-m", "bilmo"] if after is None else ["-c", SIGNALLED, *after.arguments()]
    return subprocess.Popen(
        [sys.executable, *command, *map(str, arguments)],
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


def wait_until_stopped(process: subprocess.Popen[str]) -> None:
    """Wait until SIGSTOP has stopped a process that `started` returned; fail if it has ended instead."""
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        process.returncode = os.waitstatus_to_exitcode(status)
        raise AssertionError(f"ended with code {process.returncode}: {process.communicate()}")

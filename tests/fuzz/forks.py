"""The command line in a forked process, which may be killed, stopped or short of disk space."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bilmo.cli import app as program
from fuzz.guard import GUARD
from fuzz.target import Box, Failure

SLOWEST = 30
UNEXPECTED, TRESPASS = 98, 99
"""Exit codes of a process that ended with an exception, or tried to write outside its box."""


@dataclass(frozen=True)
class Ended:
    """How a process ended; the code is negative if a signal ended it."""

    code: int
    out: str
    err: str


class Fork:
    """`bilmo ARGUMENTS...` in the folder of the case, started at once."""

    def __init__(
        self,
        box: Box,
        arguments: list[str],
        *,
        stdin: bytes = b"",
        before: Callable[[], None] = lambda: None,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        """`before` and `after` run in the new process, before and after the command."""
        self._streams = [box.streams / f"{name}-{time.monotonic_ns()}" for name in ("in", "out", "err")]
        self._streams[0].write_bytes(stdin)
        self.process = os.fork()
        if not self.process:
            _run(box.case, arguments, self._streams, before, after)

    def wait(self, *, stopped: bool = False, slowest: float = SLOWEST) -> Ended | None:
        """Wait for the end; with `stopped`, also for SIGSTOP, for which the answer is None."""
        until = time.monotonic() + slowest
        while True:
            pid, status = os.waitpid(self.process, os.WNOHANG | (os.WUNTRACED if stopped else 0))
            if pid and os.WIFSTOPPED(status):
                return None
            if pid:
                out, err = (path.read_text(encoding="utf-8", errors="replace") for path in self._streams[1:])
                for path in self._streams:
                    path.unlink()
                return _checked(Ended(os.waitstatus_to_exitcode(status), out, err))
            if time.monotonic() > until:
                os.kill(self.process, signal.SIGKILL)
                os.waitpid(self.process, 0)
                raise Failure(f"hang: the command takes more than {slowest:g} seconds")
            time.sleep(0.002)

    def end(self, *, slowest: float = SLOWEST) -> Ended:
        """Wait for the end."""
        ended = self.wait(slowest=slowest)
        assert ended is not None
        return ended


def _checked(ended: Ended) -> Ended:
    if ended.code in (UNEXPECTED, TRESPASS):
        last = ended.err.strip().splitlines()[-1:]
        frames = [line.strip() for line in ended.err.splitlines() if "/bilmo/" in line]
        place = frames[-1].split("/")[-1] if frames else ""
        raise Failure(f"traceback {place} {' '.join(last)[:300]}: {ended.err[-1500:]}")
    if ended.code in (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS):
        raise Failure(f"crash with signal {-ended.code}: {ended.err[-500:]}")
    return ended


def _run(
    folder: Path, arguments: list[str], streams: list[Path], before: Callable[[], None], after: Callable[[], None]
) -> None:
    """The new process; never returns."""
    code = UNEXPECTED
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, path in enumerate(streams):
            os.dup2(os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
        os.chdir(folder)
        sys.argv = ["bilmo", *arguments]
        plain = program._run

        def run() -> None:
            before()
            plain()

        program._run = run  # the first lines of `main` are no part of a command
        try:
            program.main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    except BaseException:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        traceback.print_exc()
    finally:
        sys.setprofile(None)
        GUARD.before_change = lambda: None
        after()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(TRESPASS if GUARD.trespass else code)

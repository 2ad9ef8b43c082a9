"""The program `bilmo` on several processes, connected as torchrun connects them, on this machine."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from program import Result, SignalAfter, program

SECONDS = 240
"""More than any run of the tests takes."""
FORKS = multiprocessing.get_context("forkserver")
"""Processes are forked from one that has imported torch, because each would need seconds to import it."""
FORKS.set_forkserver_preload(["bilmo.training.run", "bilmo.cli.app", "program", "together", "fuzz.worker"])


def together(
    folder: Path,
    *arguments: object,
    world: int,
    other: Mapping[int, tuple[object, ...]] | None = None,
    after: Mapping[int, SignalAfter] | None = None,
    largest_file: Mapping[int, int] | None = None,
) -> list[Result]:
    """Run `bilmo ARGUMENTS...` in `folder` on so many processes; code -9 is that of a process that was killed.

    other: other arguments for some of them, by rank.
    after: the signals that some of them send to themselves.
    largest_file: bytes beyond which the system lets no file of a process grow, as if the disk were full.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pipes = [FORKS.Pipe(duplex=False) for _ in range(world)]
    members = []
    for rank, (_, end) in enumerate(pipes):
        chosen = (other or {}).get(rank, arguments)
        extras = ((after or {}).get(rank), (largest_file or {}).get(rank))
        given = (folder, tuple(map(str, chosen)), rank, world, port, end, *extras)
        members.append(FORKS.Process(target=_member, args=given))
    for member in members:
        member.start()
    found = []
    for member, (begin, end) in zip(members, pipes, strict=True):
        end.close()
        try:
            found.append(begin.recv() if begin.poll(SECONDS) else Result(-1, "", "it never ended"))
        except EOFError:  # it was killed
            member.join(SECONDS)
            found.append(Result(member.exitcode or 0, "", ""))
    for member in members:
        member.kill()
        member.join()
    return found


def _member(
    folder: Path,
    arguments: tuple[str, ...],
    rank: int,
    world: int,
    port: int,
    end: Any,
    after: SignalAfter | None,
    largest: int | None,
) -> None:
    import torch

    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    if after is not None:
        _signal(after)
    if largest is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with contextlib.redirect_stderr(io.StringIO()):
        end.send(program(folder, *arguments))
    sys.stdout.flush()
    os._exit(0)


def _signal(after: SignalAfter) -> None:
    """Let this process send itself a signal when a function has returned for the n-th time."""
    owner = import_module(after.module)
    plain, left = getattr(owner, after.function), [after.calls]

    def counted(*given: Any, **named: Any) -> Any:
        found = plain(*given, **named)
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), after.number)
        return found

    setattr(owner, after.function, counted)

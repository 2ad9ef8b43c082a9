"""Processes on one machine that share what was loaded before, such as a model; each computes with one thread.

They are forked, because packed weights cannot be sent to another process, and packing them again would take as much
memory for each process. A fork shares all memory that neither side changes.

Knows: processes, pipes, torch's number of threads. Blind to: what is computed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any, Generic, Self, TypeVar

import torch

from bilmo.errors import BilmoError, ConfigError

Task = TypeVar("Task")
Result = TypeVar("Result")

STOP_SECONDS = 5
"""To stop after SIGTERM; a worker removes what it has half written."""
DONE = None
"""Sent after the last result of a task."""


def check_number(workers: int) -> None:
    """Refuse a number of workers that this system cannot start."""
    if workers < 1:
        raise ConfigError(f"workers is {workers}; it must be 1 or more")
    if workers > 1 and "fork" not in multiprocessing.get_all_start_methods():
        raise ConfigError("several workers need a system that can fork processes (Linux, macOS). Use one worker.")


class Workers(Generic[Task, Result]):
    """Processes that wait for tasks; they end with this process, whatever ends it."""

    def __init__(self, number: int, work: Callable[[Task], Iterable[Result]]) -> None:
        """Fork `number` processes. `work` runs in them, and everything that it refers to is shared."""
        self._work = work
        self._pipes: list[Connection[Any, Any]] = []
        self._processes: list[BaseProcess] = []
        self._life = os.pipe()
        """Only this process holds the end for writing, so the other end is closed when it ends."""
        context = multiprocessing.get_context("fork")
        for _ in range(number):
            ours, theirs = context.Pipe()
            self._pipes.append(ours)
            process = context.Process(target=self._serve, args=(theirs,), name="bilmo-worker", daemon=True)
            process.start()
            self._processes.append(process)
            theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop all workers, and remove their unfinished files."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join(STOP_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()
        for pipe in self._pipes:
            pipe.close()
        if self._processes:
            for end in self._life:
                os.close(end)
        self._processes, self._pipes = [], []

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:
        """Compute all tasks; yields each result with its task when it is ready. Results of one task keep their order.

        No more tasks are read than there are workers, and one that is ready for the next.
        """
        waiting = iter(tasks)
        idle = list(self._pipes)
        busy: dict[Connection[Any, Any], Task] = {}
        following = next(waiting, None)
        while busy or following is not None:
            while idle and following is not None:
                pipe = idle.pop()
                self._send(pipe, following)
                busy[pipe] = following
                following = next(waiting, None)
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                result = self._received(ready)
                if isinstance(result, Exception):
                    raise result
                if result is DONE:
                    del busy[ready]
                    idle.append(ready)
                else:
                    yield busy[ready], result

    def map(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """Compute tasks that have one result each, and yield the results in the order of the tasks.

        Each worker has one task at a time and gets the next one when its result is taken, so few tasks and results are
        in memory.
        """
        waiting = iter(tasks)
        busy: deque[Connection[Any, Any]] = deque()
        for pipe, task in zip(self._pipes, waiting, strict=False):
            self._send(pipe, task)
            busy.append(pipe)
        while busy:
            pipe = busy.popleft()
            result = self._received(pipe)
            if isinstance(result, Exception):
                raise result
            self._received(pipe)  # DONE
            for task in islice(waiting, 1):
                self._send(pipe, task)
                busy.append(pipe)
            yield result

    def _send(self, pipe: Connection[Any, Any], task: Task) -> None:
        try:
            pipe.send(task)
        except OSError:
            raise self._ended(pipe) from None

    def _received(self, pipe: Connection[Any, Any]) -> Any:
        try:
            return pipe.recv()
        except (EOFError, OSError):
            raise self._ended(pipe) from None

    def _ended(self, pipe: Connection[Any, Any]) -> BilmoError:
        """The error for a worker that has ended."""
        process = self._processes[self._pipes.index(pipe)]
        process.join(STOP_SECONDS)
        code = process.exitcode
        how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        return BilmoError(
            f"a worker process ended {how}; the system does so when memory runs out. Run the same command again, with "
            "fewer workers if there is not enough memory."
        )

    # In a worker

    def _serve(self, pipe: Connection[Any, Any]) -> None:
        """Compute tasks until the pipe is closed."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the first one stops the others
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        for other in self._pipes:
            other.close()
        os.close(self._life[1])
        Thread(target=self._end_with_parent, daemon=True).start()
        torch.set_num_threads(1)  # OpenMP hangs in a forked process that asks for more
        with suppress(EOFError, ConnectionError):  # the first process has ended
            while True:
                self._do(pipe.recv(), pipe)

    def _do(self, task: Task, pipe: Connection[Any, Any]) -> None:
        """Send the results of a task, or what went wrong."""
        try:
            for result in self._work(task):
                pipe.send(result)
            pipe.send(DONE)
        except ConnectionError:
            raise
        except Exception as error:
            pipe.send(_portable(error))

    def _end_with_parent(self) -> None:
        """End at once when the first process has ended, which may have been killed."""
        os.read(self._life[0], 1)
        os._exit(1)


def _portable(error: Exception) -> Exception:
    """An error that another process can raise as its own."""
    if isinstance(error, BilmoError | OSError | MemoryError):
        return error
    return RuntimeError(f"in a worker process:\n{''.join(traceback.format_exception(error))}")

"""One thread that computes for all requests. Texts of many requests go through the network together.

A request is a job. The thread takes a share of each waiting job in turn, so that a large request delays the others by
little. While it computes, more jobs arrive, and go together into the next batch. A job that nobody waits for any more
is dropped before its next share.

Knows: asyncio, threads. Blind to: HTTP, what is computed.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from threading import Condition, Thread
from typing import Any, Generic, TypeVar

from bilmo.web.refused import Refused

BATCH_TOKENS = 4096
"""Tokens of a batch."""
SHARE = 1024
"""Tokens of one job in a batch, while other jobs wait."""
GATHER = 0.002
"""Seconds that an idle thread waits for more requests after the first one."""
PAUSE, LONGEST_PAUSE = 0.05, 0.05
"""After a batch of several jobs: the share of its time, and the most seconds, that the thread waits for the next
requests of the same clients. Otherwise clients would fall into two groups that take turns, in batches half as large."""
MOST_RETRY = 60
"""Highest value of Retry-After, in seconds."""
Result = TypeVar("Result")
Piece = TypeVar("Piece")


class Job:
    """The work of one request."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.dropped = False

    def finish(self, value: Any) -> None:
        """Hand the result to the request, from the thread."""
        self._in_loop(lambda: self.future.set_result(value))

    def fail(self, problem: BaseException) -> None:
        """Hand an error to the request, from the thread."""
        self._in_loop(lambda: self.future.set_exception(problem))

    def _in_loop(self, settle: Callable[[], None]) -> None:
        def run() -> None:
            if not self.future.done():
                settle()

        self.dropped = True
        self._loop.call_soon_threadsafe(run)


class Texts(Job, Generic[Piece, Result]):
    """Texts that are computed together with those of other jobs with the same `key`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        key: Hashable,
        compute: Callable[[Sequence[Piece]], Sequence[Result]],
        pieces: Sequence[Piece],
        tokens: Sequence[int],
    ) -> None:
        super().__init__(loop)
        self.key, self.compute, self.pieces, self.tokens = key, compute, pieces, tokens
        self.results: list[Result] = []
        self.taken = 0

    def take(self, most: int, *, first: bool) -> tuple[Sequence[Piece], int]:
        """The next pieces with together `most` tokens or fewer, and their tokens; the `first` may have more."""
        begin, total = self.taken, 0
        while self.taken < len(self.pieces):
            count = self.tokens[self.taken]
            if total + count > most and not (first and self.taken == begin):
                break
            total += count
            self.taken += 1
        return self.pieces[begin : self.taken], total


class Steps(Job):
    """Work that cannot share a batch with other jobs; one step is computed at a time. The results are a list."""

    def __init__(self, loop: asyncio.AbstractEventLoop, steps: Iterator[Any]) -> None:
        super().__init__(loop)
        self.steps = steps
        self.results: list[Any] = []


class Observer:
    """Is called by the worker; the metrics are one."""

    def batch(self, jobs: int, tokens: int, seconds: float) -> None:
        """After each batch."""


class Worker:
    """Takes jobs from an event loop and computes them in its thread."""

    def __init__(self, *, queue: int, observer: Observer | None = None) -> None:
        self._queue, self._observer = queue, observer or Observer()
        self._jobs: deque[Job] = deque()
        self._changed = Condition()
        self._closing = False
        self._pace = 0.0
        """Seconds per job in the recent past."""
        self._pause = 0.0
        self._thread = Thread(target=self._run, name="bilmo-server", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Jobs that are not finished."""
        return sum(not job.dropped for job in list(self._jobs))

    @property
    def accepts(self) -> bool:
        """Whether another job may come."""
        return self._thread.is_alive() and not self._closing and self.waiting < self._queue

    async def texts(
        self,
        key: Hashable,
        compute: Callable[[Sequence[Piece]], Sequence[Result]],
        pieces: Sequence[Piece],
        tokens: Sequence[int],
    ) -> list[Result]:
        """The results of `compute`, one per piece. Jobs with the same key share batches.

        tokens: the size of each piece.
        """
        if not pieces:
            return []
        found: list[Result] = await self._done(Texts(asyncio.get_running_loop(), key, compute, pieces, tokens))
        return found

    async def steps(self, steps: Iterator[Result]) -> list[Result]:
        """All that an iterator gives. Other jobs are computed between its steps."""
        found: list[Result] = await self._done(Steps(asyncio.get_running_loop(), steps))
        return found

    async def call(self, function: Callable[[], Result]) -> Result:
        """The result of a function."""
        (found,) = await self.steps(function() for _ in range(1))
        return found

    async def _done(self, job: Job) -> Any:
        with self._changed:
            if (waiting := self.waiting) >= self._queue:
                seconds = min(MOST_RETRY, max(1, math.ceil(self._pace * waiting)))
                message = f"{waiting} requests are waiting already; try again in {seconds} s"
                raise Refused(429, message, {"Retry-After": str(seconds)})
            self._jobs.append(job)
            self._changed.notify()
        try:
            return await job.future
        finally:
            job.dropped = True

    async def close(self) -> None:
        """Finish all jobs that are waiting, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        await asyncio.to_thread(self._thread.join)

    # In the thread

    def _run(self) -> None:
        while True:
            with self._changed:
                idle = not self._jobs
                while not self._jobs and not self._closing:
                    self._changed.wait()
                if not self._jobs:
                    return
                pause = 0.0 if self._closing or self._full() else max(self._pause, GATHER if idle else 0.0)
            time.sleep(pause)
            self._turn()

    def _full(self) -> bool:
        """Whether the jobs that wait fill a batch."""
        waiting = (sum(job.tokens[job.taken :]) if isinstance(job, Texts) else BATCH_TOKENS for job in self._jobs)
        return sum(waiting) >= BATCH_TOKENS

    def _turn(self) -> None:
        """One step of the first job, or one batch of the jobs that can share it."""
        with self._changed:
            self._jobs = deque(job for job in self._jobs if not job.dropped)
            if not self._jobs:
                return
            first = self._jobs[0]
            taken = [] if isinstance(first, Steps) else self._taken(first)
        begin = time.perf_counter()
        if isinstance(first, Steps):
            self._step(first)
        else:
            self._batch(taken)
        seconds = time.perf_counter() - begin
        jobs = max(1, len(taken))
        self._pause = min(LONGEST_PAUSE, PAUSE * seconds) if jobs > 1 else 0.0
        self._observer.batch(jobs, sum(tokens for _, _, tokens in taken), seconds)
        self._pace += 0.1 * (seconds / jobs - self._pace)
        with self._changed:
            worked = {id(first), *(id(job) for job, _, _ in taken)}
            rest = [job for job in self._jobs if not job.dropped]
            self._jobs = deque(sorted(rest, key=lambda job: id(job) in worked))  # those that waited come first

    def _taken(self, first: Job) -> list[tuple[Texts[Any, Any], Sequence[Any], int]]:
        """Shares of the jobs that can share a batch with the first one."""
        alike = [job for job in self._jobs if isinstance(job, Texts) and isinstance(first, Texts)]
        alike = [job for job in alike if job.key == first.key]  # type: ignore[attr-defined]
        most = SHARE if len(self._jobs) > 1 else BATCH_TOKENS
        taken, total = [], 0
        for job in alike:
            pieces, tokens = job.take(min(most, BATCH_TOKENS - total), first=not total)
            if pieces:
                taken.append((job, pieces, tokens))
                total += tokens
        return taken

    def _batch(self, taken: list[tuple[Texts[Any, Any], Sequence[Any], int]]) -> None:
        try:
            found = iter(taken[0][0].compute([piece for _, pieces, _ in taken for piece in pieces]))
        except Exception as problem:
            if len(taken) == 1:
                taken[0][0].fail(problem)
            for share in taken if len(taken) > 1 else ():  # alone, so that only the request with the problem fails
                self._batch([share])
            return
        for job, pieces, _ in taken:
            job.results += [next(found) for _ in pieces]
            if len(job.results) == len(job.pieces):
                job.finish(job.results)

    def _step(self, job: Steps) -> None:
        try:
            job.results.append(next(job.steps))
        except StopIteration:
            job.finish(job.results)
        except Exception as problem:
            job.fail(problem)

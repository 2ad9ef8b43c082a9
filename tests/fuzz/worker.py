"""The process in which cases run: it takes orders from the campaign, and may crash or hang.

An order has a seed and a number of cases, or one case. Before each case, the case is written to a file, where the
campaign finds it if the process ends.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import resource
import sys
import tempfile
import traceback
from collections import Counter
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from bilmo.store import atomic
from fuzz.all import TARGETS
from fuzz.guard import GUARD
from fuzz.target import Box, Failure, Target

SLOWEST = 30
"""Seconds after which a case is a hang."""
ERRORS = "errors"
"""File with what the process wrote to standard error."""
MOST_MEMORY = 4 << 30
"""Bytes that a case may add to the memory of the process."""


class Found(Exception):  # noqa: N818
    """A failure that is not known yet, so that hypothesis looks for a smaller case."""


class Worker:
    """One target in one process."""

    def __init__(self, target: Target, box: Box) -> None:
        self.target, self.box = target, box
        self.counts: Counter[str] = Counter()
        self.failures: dict[str, dict[str, Any]] = {}
        """By what failed and where: the smallest case that was found, and the message."""

    def one(self, case: Any, known: list[str]) -> None:
        """Try a case; raises Found if it fails in a way that is not known."""
        self._write_current(case)
        faulthandler.dump_traceback_later(SLOWEST, exit=True)
        GUARD.on, GUARD.trespass = True, None
        failed: BaseException | None = None
        try:
            outcome = self.target.check(self.box, case)
            self.box.check_outside()
        except Exception as error:
            failed = error
        except BaseException as error:  # a trespass, or a signal
            failed = error
        finally:
            GUARD.on = False
            faulthandler.cancel_dump_traceback_later()
        failed = GUARD.trespass or failed
        if failed is None:
            self.counts[outcome] += 1
            return
        self.counts["failed"] += 1
        where = place_of(failed)
        self.failures[where] = {"case": case, "where": where, "message": f"{type(failed).__name__}: {failed}"[:2000]}
        if where not in known:
            raise Found(where)

    def _write_current(self, case: Any) -> None:
        text = json.dumps({"case": case, "counts": self.counts})
        (self.box.root / "current.json").write_text(text)

    def some(self, number: int, chosen: int, known: list[str]) -> None:
        """Draw and try a number of cases; when one fails, smaller ones that fail in the same way are searched."""

        @seed(chosen)
        @settings(
            max_examples=number,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            verbosity=Verbosity.quiet,
        )
        @given(self.target.cases())
        def tried(case: Any) -> None:
            self.one(case, known)

        try:
            tried()
        except Found:
            pass
        except BaseException as error:  # hypothesis found that a case fails only sometimes
            if not self.failures:
                raise
            last = list(self.failures.values())[-1]
            last["message"] += f" (not each time: {type(error).__name__} {error})"


def place_of(error: BaseException) -> str:
    """Kind and place of an error: the same mistake found twice is one failure."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/bilmo/" in frame.filename]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else ""
    what = ": ".join(str(error).split(": ")[:2])[:100] if isinstance(error, Failure) else ""
    what = re.sub(r"bilmo-\w{8}", "bilmo-", what)  # the random name of a temporary folder
    return " ".join(filter(None, (type(error).__name__, what, place)))


def work(name: str, folder: Path, orders: Connection) -> None:
    """Take orders until there are no more; whatever a case prints goes to a file."""
    os.setsid()  # Ctrl-C is for the campaign, not for the case that is being tried
    errors = os.open(folder / ERRORS, os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(errors, 1)
    os.dup2(errors, 2)
    faulthandler.enable()
    torch.set_num_threads(1)
    atomic.PUBLISH_SECONDS = 0.0  # do not wait for another process that may be publishing
    box = Box(folder / "box")
    places = {"TMPDIR": "tmp", "HOME": "home", "BILMO_CACHE": "cache", "XDG_CACHE_HOME": "cache"}
    places["TORCHINDUCTOR_CACHE_DIR"] = "tmp"  # torch makes this folder when an optimizer is first used
    for variable, place in places.items():
        os.environ[variable] = str(box.root / place)
    tempfile.tempdir = None  # it may have been looked up already
    os.chdir(box.root / "home")
    sys.dont_write_bytecode = True
    GUARD.start(box.root / place for place in ("case", "tmp", "cache", "streams"))
    target = TARGETS[name]()
    target.prepare(box)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_MEMORY, resource.RLIM_INFINITY))
    orders.send("ready")
    with suppress(EOFError):
        while order := orders.recv():
            orders.send(answer(Worker(target, box), order))


def answer(worker: Worker, order: dict[str, Any]) -> dict[str, Any]:
    """Carry out one order."""
    if "case" in order:
        with suppress(Found):
            worker.one(order["case"], known=[])
    else:
        worker.some(order["number"], order["seed"], order["known"])
    return {"counts": worker.counts, "failures": list(worker.failures.values())}

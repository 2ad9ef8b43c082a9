"""`make fuzz`: many damaged files, hostile sentences, random commands and kills; a table of what happened.

    make fuzz CASES=200000 JOBS=2 SAVE=1   all targets, each with its share of the cases; the table is saved
    make fuzz MINUTES=60                   the same by time
    make fuzz CASES=1000 ONLY=zip          one target

A case that fails is made smaller and saved in tests/fuzz/regressions, where the tests try it again. With SAVE=1, the
table is written after each target, and the same command continues a campaign that was stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from bilmo.progress import advancing
from bilmo.store.atomic import new_file
from fuzz import worker
from fuzz.all import TARGETS
from fuzz.target import OTHER, REFUSED, SAME
from together import FORKS

HERE = Path(__file__).parent
REGRESSIONS = HERE / "regressions"
ROOT = HERE.parents[1]
RESULT = ROOT / "benchmarks" / "results" / "fuzz.md"
UNFINISHED = HERE / "unfinished.json"
"""The targets that are done, while a campaign that is saved is not finished."""


@dataclass
class Row:
    """What happened to the cases of one target."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: float = 0.0
    commit: str = ""

    @property
    def cases(self) -> int:
        return self.counts.total()


class CannotBePrepared(Exception):  # noqa: N818
    """A target fails before its first case."""


class Process:
    """A worker as the campaign sees it."""

    def __init__(self, name: str) -> None:
        memory = Path("/dev/shm")
        self.root = Path(tempfile.mkdtemp(prefix="bilmo-fuzz-", dir=memory if memory.is_dir() else None))
        self._orders, theirs = FORKS.Pipe()
        self.process = FORKS.Process(target=worker.work, args=(name, self.root, theirs))
        self.process.start()
        theirs.close()
        try:
            self._orders.recv()
        except EOFError:
            said = self.said()
            self.close()
            raise CannotBePrepared(said) from None

    def ask(self, **order: Any) -> dict[str, Any]:
        """Send an order and wait for the answer; if the process ends, the case that it was at is the failure."""
        try:
            self._orders.send(order)
            return dict(self._orders.recv())
        except (EOFError, ConnectionError):
            self.process.join()
        said = self.said()
        hang = "Timeout (" in said
        current = json.loads((self.root / "box" / "current.json").read_text())
        frames = [line.strip().split("/bilmo/")[1] for line in said.splitlines() if "/bilmo/" in line]
        where = f"{'hang' if hang else f'crash, code {self.process.exitcode}'} {frames[0] if frames else said[-300:]}"
        failure = {"case": current["case"], "where": where, "message": "\n    ".join([where, *frames[1:6]])}
        counts = Counter(current["counts"]) + Counter({"failed": 1})
        return {"counts": counts, "failures": [failure], "ended": True}

    def said(self) -> str:
        """What the process wrote to standard error, which is much only if it crashed."""
        errors = self.root / worker.ERRORS
        return errors.read_text(errors="replace") if errors.exists() else ""

    def close(self) -> None:
        self._orders.close()
        self.process.join()
        shutil.rmtree(self.root, ignore_errors=True)


class Stopped(Exception):  # noqa: N818
    """The campaign was stopped; what a worker says from now on is no result."""


class Campaign:
    """The numbers of a campaign, and its workers, which may run side by side."""

    def __init__(self, seed: int, *, on_cases: Callable[[int], None] = lambda number: None) -> None:
        """`on_cases` is called with the number of cases that were tried since the last call."""
        self.seed = seed
        self._on_cases = on_cases
        self._stopped = False
        self._processes: dict[str, Process] = {}

    def run(self, name: str, number: int, until: float = float("inf")) -> Row:
        """Run cases of a target, up to a number and a time."""
        row = Row(commit=commit())
        began = time.monotonic()
        try:
            self._start(name)
            self._fill(row, name, number, until)
        except CannotBePrepared as error:  # the other targets go on
            last = str(error).strip().splitlines()[-1:]
            where = f"cannot be prepared: {' '.join(last)}"
            row.failures[where] = {"where": where}
            print(f"  {name}: {where}", flush=True)
        finally:
            if name in self._processes:
                self._processes.pop(name).close()
        row.seconds = time.monotonic() - began
        return row

    def _fill(self, row: Row, name: str, number: int, until: float) -> None:
        draw = random.Random(f"{self.seed} {name}")
        while row.cases < number and time.monotonic() < until:
            most = min(TARGETS[name].chunk, number - row.cases)
            answer = self._processes[name].ask(number=most, seed=draw.getrandbits(32), known=list(row.failures))
            if self._stopped:
                raise Stopped
            row.counts.update(answer["counts"])
            for failure in answer["failures"]:
                if failure["where"] not in row.failures:
                    row.failures[failure["where"]] = failure
                    print(f"  {name}: {failure['message'][:600]}\n    saved as {save(name, failure)}", flush=True)
            if answer.get("ended"):
                self._processes[name].close()
                self._start(name)
            self._on_cases(sum(answer["counts"].values()))

    def _start(self, name: str) -> None:
        if self._stopped:
            raise Stopped
        self._processes[name] = Process(name)

    def stop(self) -> None:
        """End all workers."""
        self._stopped = True
        for each in list(self._processes.values()):
            each.process.kill()


def commit() -> str:
    """The commit that is checked out, and whether the code differs from it."""
    try:
        head = _git("rev-parse", "--short", "HEAD")
        changed = _git("status", "--porcelain", "--", "src", "tests/fuzz/*.py")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head}, changed" if changed else head


def _git(*command: str) -> str:
    return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def save(name: str, failure: dict[str, Any]) -> Path:
    """Keep a failing case as a file that the tests read."""
    text = json.dumps({"target": name, "found": failure["message"], "case": failure["case"]}, indent=1)
    path = REGRESSIONS / f"{name.replace(' ', '-')}-{hashlib.sha256(failure['where'].encode()).hexdigest()[:8]}.json"
    path.write_text(text + "\n")
    return path


def replay(paths: list[Path]) -> list[str]:
    """Try saved cases again; returns what still fails."""
    failed = []
    cases = [(path, json.loads(path.read_text())) for path in paths]
    for name in dict.fromkeys(case["target"] for _, case in cases):
        process = Process(name)
        for path, case in cases:
            if case["target"] == name:
                answer = process.ask(case=case["case"])
                failed += [f"{path.name}: {failure['message']}" for failure in answer["failures"]]
                if answer.get("ended"):
                    process.close()
                    process = Process(name)
        process.close()
    return failed


def table(rows: dict[str, Row]) -> str:
    """The counts of each target."""
    head = (
        "| target | cases | as if undamaged | refused | read as something else | failed | seconds | commit |\n"
        f"|{'---|' * 8}"
    )
    lines = [
        f"| {name} | {row.cases:,} | {row.counts[SAME]:,} | {row.counts[REFUSED]:,} | {row.counts[OTHER]:,} "
        f"| {row.counts['failed']:,} | {row.seconds:,.0f} | {row.commit} |"
        for name, row in rows.items()
    ]
    total = sum((row.counts for row in rows.values()), Counter())
    seconds = sum(row.seconds for row in rows.values())
    lines.append(
        f"| **all** | **{total.total():,}** | {total[SAME]:,} | {total[REFUSED]:,} | {total[OTHER]:,} "
        f"| **{total['failed']:,}** | {seconds:,.0f} | |"
    )
    return "\n".join([head, *lines])


def page(rows: dict[str, Row], command: str, left: Sequence[str] = ()) -> str:
    """The page with the result; `left` are the targets that are not done."""
    failures = [f"- {name}: {where}" for name, row in rows.items() for where in row.failures]
    return (
        "# Campaign of damaged files, hostile text, random commands and kills\n\n"
        f"{date.today().isoformat()} · `{command}` · {os.cpu_count()} cores\n\n"
        "A case fails if it ends in a traceback or a crash, takes more than 30 seconds, gives another result without "
        "an error although the format has checksums, or changes a file outside its folder. "
        "`tests/fuzz` has the program, `docs/promises.md` says what is promised.\n\n"
        f"{table(rows)}\n\n"
        + ("Failures:\n\n" + "\n".join(failures) if failures else "No failures.")
        + "\n"
        + (f"\nNot finished; still to be done: {', '.join(left)}.\n" if left else "")
    )


class Saved:
    """The file with the targets that are done, and the page with the table."""

    def __init__(self, plan: dict[str, Any], command: str) -> None:
        """plan: what makes two campaigns the same, except the seed."""
        self.plan, self.command = plan, command

    def read(self, seed: int | None) -> tuple[int | None, dict[str, Row]]:
        """The seed and the targets that are done without a failure, of the same campaign; if there is none, nothing."""
        if not UNFINISHED.exists():
            return seed, {}
        data = json.loads(UNFINISHED.read_text())
        if data["plan"] != self.plan or seed not in (None, data["seed"]):
            return seed, {}
        rows = {name: Row(**row | {"counts": Counter(row["counts"])}) for name, row in data["rows"].items()}
        return data["seed"], {name: row for name, row in rows.items() if not row.failures}

    def write(self, seed: int, rows: dict[str, Row]) -> None:
        """Save what is done."""
        names = self.plan["targets"]
        rows = {name: rows[name] for name in names if name in rows}
        left = [name for name in names if name not in rows]
        RESULT.write_text(page(rows, f"{self.command} SEED={seed}", left))
        if left or any(row.failures for row in rows.values()):
            done = {name: vars(row) for name, row in rows.items()}
            with new_file(UNFINISHED) as partial:
                partial.write_text(json.dumps({"plan": self.plan, "seed": seed, "rows": done}, indent=1) + "\n")
        else:
            UNFINISHED.unlink(missing_ok=True)


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, help="number of cases of all targets together")
    parser.add_argument("--minutes", type=float, help="time for all targets together")
    parser.add_argument("--seed", type=int, default=None, help="repeats a campaign; random if it is not given")
    parser.add_argument("--only", choices=list(TARGETS), action="append", help="only this target; may be repeated")
    parser.add_argument("--replay", nargs="*", type=Path, help="try saved cases again: these files, or all")
    parser.add_argument("--jobs", type=int, default=1, help="number of targets that are tried side by side")
    parser.add_argument("--save", action="store_true", help=f"also write {RESULT.name}, and continue if it was stopped")
    given = parser.parse_args()
    if given.replay is not None:
        failed = replay(given.replay or sorted(REGRESSIONS.glob("*.json")))
        print("\n".join(failed) or "no case fails")
        sys.exit(bool(failed))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    chosen = given.only or list(TARGETS)
    cases = given.cases or (2000 if given.minutes is None else None)
    command = f"make fuzz CASES={cases}" if cases else f"make fuzz MINUTES={given.minutes:g}"
    saved = Saved({"targets": chosen, "cases": cases, "minutes": given.minutes}, command)
    seed, rows = saved.read(given.seed) if given.save else (given.seed, {})
    if rows:
        print(f"continued: {len(rows)} of {len(chosen)} targets are done", flush=True)
    seed = random.SystemRandom().getrandbits(32) if seed is None else seed
    print(f"seed {seed}", flush=True)
    run_all(
        chosen, rows, seed, cases=cases, minutes=given.minutes, jobs=given.jobs, saved=saved if given.save else None
    )
    print("\n" + table({name: rows[name] for name in chosen}))
    sys.exit(any(row.failures for row in rows.values()))


def run_all(
    chosen: Sequence[str],
    rows: dict[str, Row],
    seed: int,
    *,
    cases: int | None,
    minutes: float | None,
    jobs: int,
    saved: Saved | None,
) -> None:
    """Run all targets that have no row yet, and add their rows."""
    shares = sum(TARGETS[name].share for name in chosen)
    numbers = {name: max(1, round((cases or 0) * TARGETS[name].share / shares)) for name in chosen}
    # The targets at the end of the list take the longest, so they are started first.
    left = [name for name in reversed(chosen) if name not in rows]
    with advancing("cases", sum(numbers[name] for name in left), show=cases is not None) as advance:
        campaign = Campaign(seed, on_cases=advance)

        def run(name: str) -> Row:
            if cases is not None:
                return campaign.run(name, numbers[name])
            seconds = 60 * (minutes or 0) * jobs / len(chosen)
            return campaign.run(name, sys.maxsize, time.monotonic() + seconds)

        with ThreadPoolExecutor(jobs) as pool:
            running = {pool.submit(run, name): name for name in left}
            try:
                for done in as_completed(running):
                    name, row = running[done], done.result()
                    rows[name] = row
                    print(
                        f"{name}: {row.cases:,} cases, {row.counts['failed']:,} failed, {row.seconds:.0f} s", flush=True
                    )
                    if saved:
                        saved.write(seed, rows)
            except BaseException as error:
                for waiting in running:
                    waiting.cancel()
                campaign.stop()
                if not isinstance(error, KeyboardInterrupt):
                    raise
                again = "; the same command continues" if saved else ""
                print(f"stopped: {len(rows)} of {len(chosen)} targets are done{again}", flush=True)
                sys.exit(130)


if __name__ == "__main__":
    main()

"""`make fuzz`: many damaged files, hostile sentences, random commands and kills; a table of what happened.

    make fuzz CASES=200000 SAVE=1       all targets, each with its share of the cases; the table is saved
    make fuzz MINUTES=60                the same by time
    make fuzz CASES=1000 ONLY=zip       one target

A case that fails is made smaller and saved in tests/fuzz/regressions, where the tests try it again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from bilmo.progress import share_done
from fuzz.all import TARGETS
from fuzz.target import OTHER, REFUSED, SAME

HERE = Path(__file__).parent
REGRESSIONS = HERE / "regressions"
RESULT = HERE.parents[1] / "benchmarks" / "results" / "fuzz.md"


@dataclass
class Row:
    """What happened to the cases of one target."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def cases(self) -> int:
        return self.counts.total()


class Process:
    """A worker as the campaign sees it."""

    def __init__(self, name: str) -> None:
        memory = Path("/dev/shm")
        self.root = Path(tempfile.mkdtemp(prefix="bilmo-fuzz-", dir=memory if memory.is_dir() else None))
        self.errors = (self.root / "errors").open("w+", errors="replace")
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fuzz.worker", name, str(self.root / "box")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=environment,
        )
        assert self.process.stdin and self.process.stdout
        self._orders, self._answers = self.process.stdin, self.process.stdout
        if self._answers.readline() != "ready\n":
            said = self.said()
            self.close()
            raise RuntimeError(f"{name}: cannot be prepared.\n{said}")

    def ask(self, **order: Any) -> dict[str, Any]:
        """Send an order and wait for the answer; if the process ends, the case that it was at is the failure."""
        self._orders.write(json.dumps(order) + "\n")
        self._orders.flush()
        answer = self._answers.readline()
        if answer:
            return dict(json.loads(answer))
        code = self.process.wait()
        said = self.said()
        hang = "Timeout (" in said
        current = json.loads((self.root / "box" / "current.json").read_text())
        frames = [line.strip().split("/bilmo/")[1] for line in said.splitlines() if "/bilmo/" in line]
        where = f"{'hang' if hang else f'crash, code {code}'} {frames[0] if frames else said[-300:]}"
        failure = {"case": current["case"], "where": where, "message": "\n    ".join([where, *frames[1:6]])}
        counts = Counter(current["counts"]) + Counter({"failed": 1})
        return {"counts": counts, "failures": [failure], "ended": True}

    def said(self) -> str:
        """What the process wrote to standard error, which is much only if it crashed."""
        self.errors.seek(0)
        return self.errors.read()

    def close(self) -> None:
        self._orders.close()
        self.process.wait()
        self._answers.close()
        self.errors.close()
        shutil.rmtree(self.root, ignore_errors=True)


def run_target(name: str, number: int, until: float, seed: int) -> Row:
    """Run cases of a target, up to a number and a time."""
    row, process = Row(), Process(name)
    draw = random.Random(f"{seed} {name}")
    began = time.monotonic()
    with share_done(name, number) as show:
        while row.cases < number and time.monotonic() < until:
            most = min(TARGETS[name].chunk, number - row.cases)
            answer = process.ask(number=most, seed=draw.getrandbits(32), known=list(row.failures))
            row.counts.update(answer["counts"])
            for failure in answer["failures"]:
                if failure["where"] not in row.failures:
                    row.failures[failure["where"]] = failure
                    print(f"  {name}: {failure['message'][:600]}\n    saved as {save(name, failure)}", flush=True)
            if answer.get("ended"):
                process.close()
                process = Process(name)
            show(row.cases, f"{row.cases / (time.monotonic() - began):,.0f} cases/s")
    process.close()
    row.seconds = time.monotonic() - began
    return row


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
    head = f"| target | cases | as if undamaged | refused | read as something else | failed | seconds |\n|{'---|' * 7}"
    lines = [
        f"| {name} | {row.cases:,} | {row.counts[SAME]:,} | {row.counts[REFUSED]:,} | {row.counts[OTHER]:,} "
        f"| {row.counts['failed']:,} | {row.seconds:,.0f} |"
        for name, row in rows.items()
    ]
    total = sum((row.counts for row in rows.values()), Counter())
    seconds = sum(row.seconds for row in rows.values())
    lines.append(
        f"| **all** | **{total.total():,}** | {total[SAME]:,} | {total[REFUSED]:,} | {total[OTHER]:,} "
        f"| **{total['failed']:,}** | {seconds:,.0f} |"
    )
    return "\n".join([head, *lines])


def page(rows: dict[str, Row], command: str) -> str:
    """The page with the result."""
    failures = [f"- {name}: {where}" for name, row in rows.items() for where in row.failures]
    return (
        "# Campaign of damaged files, hostile text, random commands and kills\n\n"
        f"{date.today().isoformat()} · `{command}` · {os.cpu_count()} cores, one is used\n\n"
        "A case fails if it ends in a traceback or a crash, takes more than 30 seconds, gives another result without "
        "an error although the format has checksums, or changes a file outside its folder. "
        "`tests/fuzz` has the program, `docs/promises.md` says what is promised.\n\n"
        f"{table(rows)}\n\n" + ("Failures:\n\n" + "\n".join(failures) if failures else "No failures.") + "\n"
    )


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, help="number of cases of all targets together")
    parser.add_argument("--minutes", type=float, help="time for all targets together")
    parser.add_argument("--seed", type=int, default=None, help="repeats a campaign; random if it is not given")
    parser.add_argument("--only", choices=list(TARGETS), action="append", help="only this target; may be repeated")
    parser.add_argument("--replay", nargs="*", type=Path, help="try saved cases again: these files, or all")
    parser.add_argument("--save", action="store_true", help=f"also write the table to {RESULT.name}")
    given = parser.parse_args()
    if given.replay is not None:
        failed = replay(given.replay or sorted(REGRESSIONS.glob("*.json")))
        print("\n".join(failed) or "no case fails")
        sys.exit(bool(failed))
    chosen = given.only or list(TARGETS)
    seed = random.SystemRandom().getrandbits(32) if given.seed is None else given.seed
    cases = given.cases or (2000 if given.minutes is None else sys.maxsize)
    command = f"make fuzz CASES={given.cases}" if given.cases else f"make fuzz MINUTES={given.minutes}"
    print(f"seed {seed}", flush=True)
    shares = sum(TARGETS[name].share for name in chosen)
    rows: dict[str, Row] = {}
    for name in chosen:
        number = max(1, round(cases * TARGETS[name].share / shares))
        until = time.monotonic() + (60 * given.minutes / len(chosen) if given.minutes else float("inf"))
        rows[name] = run_target(name, number, until, seed)
        row = rows[name]
        print(f"{name}: {row.cases:,} cases, {row.counts['failed']:,} failed, {row.seconds:.0f} s", flush=True)
    print("\n" + table(rows))
    if given.save:
        RESULT.write_text(page(rows, f"{command} SEED={seed}"))
    sys.exit(any(row.failures for row in rows.values()))


if __name__ == "__main__":
    main()

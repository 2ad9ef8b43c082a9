"""The log of a training run, train.jsonl: one line per step and per evaluation, each once and in their order.

Knows: JSON, the events of a run. Blind to: how a run works.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from bilmo.store.atomic import new_file
from bilmo.training.events import Evaluation, Progress, Step

VALUES = {"step": "loss", "evaluation": "mean"}
"""Kinds of entries, and the number that each must have."""


def log_event(event: Step | Evaluation, file: IO[str]) -> None:
    """Write one line; numbers that are not finite become null, because JSON has no NaN."""
    values = {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in vars(event).items()}
    file.write(json.dumps({"event": type(event).__name__.lower(), **values}) + "\n")
    file.flush()


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """Every entry; a line that is incomplete or damaged is left out."""
    with path.open("rb") as lines:
        yield from (entry for line in lines if (entry := _entry(line)) is not None)


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
        value = entry[VALUES[entry["event"]]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    sound = type(entry.get("number")) is int and (value is None or isinstance(value, int | float))
    return entry if sound else None


def remove_repeated(path: Path, progress: Progress) -> None:
    """Remove the steps after `progress`, which a resumed run computes and logs again."""
    if not path.exists():
        return
    evaluated = progress.finished or progress.last_evaluation_step == progress.steps
    until = {"step": progress.steps, "evaluation": progress.steps if evaluated else progress.steps - 1}
    before = path.read_bytes()
    kept: dict[tuple[str, int], bytes] = {}
    for line in before.splitlines():
        entry = _entry(line)
        if entry is not None and entry["number"] <= until[entry["event"]]:
            kept.setdefault((entry["event"], entry["number"]), line + b"\n")
    after = b"".join(kept.values())
    if after != before:
        with new_file(path) as partial:
            partial.write_bytes(after)

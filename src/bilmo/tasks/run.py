"""A fit from examples to a folder: learned, judged, saved, resumed.

The folder holds the best so far at every moment, and in `training/` what is needed to go on.

Knows: Task, folder. Blind to: how files of examples look, the command line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bilmo.errors import ConfigError
from bilmo.net.config import STRICT
from bilmo.store.beside import new_file
from bilmo.store.folder import read_json
from bilmo.store.run_folder import RUN, alone
from bilmo.tasks import folder as folders
from bilmo.tasks.events import Epoch, Event, Finished
from bilmo.tasks.examples import Examples
from bilmo.tasks.settings import Settings, settings_of
from bilmo.tasks.task import Task
from bilmo.train.recipe import differences

CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True, kw_only=True)
class RunFile:
    """What identifies a run: it can go on only as what it was."""

    __pydantic_config__ = STRICT

    task: str
    settings: Settings
    model: str
    vectors: str
    data: str
    """A hash of all examples."""


def fit(
    task: Task, folder: Path, train: Examples, dev: Examples | None, *, model: str, vectors: str
) -> Iterator[Event]:
    """Learn into a folder, or go on where the same run stopped; `model` and `vectors` are named in it."""
    now = RunFile(
        task=task.name,
        settings=settings_of(task.settings),
        model=model,
        vectors=vectors,
        data=hashlib.sha256(json.dumps([train, dev]).encode()).hexdigest(),
    )
    with alone(folder, "run of a task") as work:
        _same(now, work)
        for event in task.events(*train, dev=dev, checkpoint=work / CHECKPOINT):
            if not (work / RUN).exists():  # the data could be used: from now on this is a run
                with new_file(work / RUN) as partial:
                    partial.write_text(json.dumps(asdict(now), indent=1), encoding="utf-8")
            if (isinstance(event, Epoch) and event.best) or isinstance(event, Finished):
                folders.publish(task, folder, model=model)
            yield event


def _same(now: RunFile, work: Path) -> None:
    """Whatever was begun here must be this run."""
    if not (work / RUN).exists():
        return
    was = read_json(work / RUN, RunFile)
    changed = differences(was, now)
    if changed:
        shown = ["the examples are others" if line.startswith("data ") else line for line in changed]
        raise ConfigError(
            f"{work.parent}: was begun with other settings, so it cannot be gone on with.\n"
            + "\n".join(f"  {line}" for line in shown)
            + "\nUse the same settings, or another folder."
        )

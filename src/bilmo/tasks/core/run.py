"""A fit from examples to a folder: learned, judged, saved, resumed.

The folder holds the best so far at every moment, and in `training/` what is needed to go on.

Knows: Task, folder. Blind to: how files of examples look, the command line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bilmo.errors import ConfigError
from bilmo.net.config import STRICT
from bilmo.store.atomic import new_file
from bilmo.store.run_folder import CHECKPOINT, RUN, alone, run_of
from bilmo.tasks.core import folder as folders
from bilmo.tasks.core.estimator import Estimator
from bilmo.tasks.core.events import Epoch, Event, Finished
from bilmo.tasks.core.settings import check_settings
from bilmo.tasks.core.spec import Dataset
from bilmo.tasks.network.words import identity
from bilmo.train.recipe import differences

KIND = "run of a task"


@dataclass(frozen=True, kw_only=True)
class RunFile:
    """What identifies a run: it can go on only as what it was."""

    __pydantic_config__ = STRICT

    task: str
    settings: dict[str, Any]
    bilm: str
    """What identifies the biLM, wherever it lies; empty without ELMo."""
    vectors: str
    """What identifies the word vectors."""
    data: str
    """A hash of all examples."""


OTHERS = {
    "bilm": "the biLM is another one",
    "vectors": "the word vectors are others",
    "data": "the examples are others",
}
"""What to say where a hash differs."""


def fit(
    task: Estimator[Any, Any],
    folder: Path,
    train: Dataset[Any, Any],
    dev: Dataset[Any, Any] | None,
    *,
    model: str,
) -> Iterator[Event]:
    """Learn into a folder, or go on where the same run stopped; `model` is where the biLM will be looked for."""
    now = RunFile(
        task=task.task.name,
        settings=asdict(check_settings(task.settings, task.task.settings)),
        bilm=task.elmo.bundle.identity() if task.elmo is not None else "",
        vectors=identity(task.vectors),
        data=hashlib.sha256(json.dumps([train[:2], dev and dev[:2]]).encode()).hexdigest(),
    )
    with alone(folder, KIND) as work:
        _same(now, work)
        begun = False
        written: dict[str, str] = {}
        for event in task.events(train, dev=dev, checkpoint=work / CHECKPOINT):
            if not begun:  # the data could be used: from now on this is a run
                with new_file(work / RUN) as partial:
                    partial.write_text(json.dumps(asdict(now), indent=1), encoding="utf-8")
                begun = True
            if (isinstance(event, Epoch) and event.best) or isinstance(event, Finished):
                written = folders.publish(task, folder, model=model, written=written)
            yield event


def _same(now: RunFile, work: Path) -> None:
    """Whatever was begun here must be this run; how long it lasts at most may change, for no step depends on it."""
    was = run_of(work, RunFile, KIND)
    if was is None:
        return
    given = json.loads(json.dumps(now.settings))  # as it is read from the file
    lasting = was.settings | {"epochs": given["epochs"], "patience": given["patience"]}
    names = [*was.settings, *(name for name in given if name not in was.settings)]
    changed = [
        f"settings.{name} was {lasting.get(name)!r} and is now {given.get(name)!r}"
        for name in names
        if lasting.get(name) != given.get(name)
    ]
    changed += differences(replace(was, settings={}), replace(now, settings={}))
    if changed:
        shown = [OTHERS.get(line.split()[0], line) for line in changed]
        raise ConfigError(
            f"{work.parent}: was begun with other settings, so it cannot be gone on with.\n"
            + "\n".join(f"  {line}" for line in shown)
            + "\nUse the same settings, or another folder."
        )

"""Fit a task into a folder: the best epoch so far is published there, and the run can be resumed.

The folder holds a complete task from the first epoch on, and in `training/` what is needed to resume.

Knows: Estimator, folder, runs. Blind to: the layout of files of examples, the command line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bilmo.store.checkpoint import CHECKPOINT
from bilmo.store.run import WORK, Identity, open_run
from bilmo.tasks.core import folder as folders
from bilmo.tasks.core.estimator import Estimator
from bilmo.tasks.core.events import Epoch, Event, Finished
from bilmo.tasks.core.settings import check_settings
from bilmo.tasks.core.spec import Dataset
from bilmo.tasks.network.words import identity as identity_of_words

LENGTH = ("epochs", "patience")
"""Settings that may change when a run is resumed: no step depends on them."""


def fit(
    task: Estimator[Any, Any],
    folder: Path,
    train: Dataset[Any, Any],
    dev: Dataset[Any, Any] | None,
    *,
    model: str,
) -> Iterator[Event]:
    """Fit into a folder, or resume the same run where it stopped; `model` is where the biLM can be found again."""
    settings = asdict(check_settings(task.settings, task.task.settings))
    examples = [(part.examples, part.answers) if part is not None else None for part in (train, dev)]
    identity = Identity(
        settings={"task": task.task.name} | {name: value for name, value in settings.items() if name not in LENGTH},
        inputs={
            "the biLM": task.elmo.bundle.identity() if task.elmo is not None else "",
            "the word vectors": identity_of_words(task.vectors),
            "the examples": hashlib.sha256(json.dumps(examples).encode()).hexdigest(),
        },
    )
    with open_run(folder, folder / WORK, kind="task run", identity=identity) as run:
        written: dict[str, str] = {}
        for event in task.events(train, dev=dev, checkpoint=run.work / CHECKPOINT):
            run.start()  # after the first event: the examples can be used
            if (isinstance(event, Epoch) and event.best) or isinstance(event, Finished):
                written = folders.publish(task, folder, model=model, written=written)
            yield event

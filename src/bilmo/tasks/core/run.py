"""Fit a task into a folder: the best epoch so far is published there, and the run can be resumed.

The folder holds a complete task from the first epoch on, and in `training/` what is needed to resume.

Knows: Estimator, checkpoints, task_folder, runs. Blind to: the layout of files of examples, the command line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from bilmo.errors import DamagedFile
from bilmo.store import checkpoint
from bilmo.store.checkpoint import CHECKPOINT
from bilmo.store.run import WORK, Identity, open_run
from bilmo.tasks.core import task_folder
from bilmo.tasks.core.estimator import Estimator, Training
from bilmo.tasks.core.events import Epoch, Event, Finished, Progress
from bilmo.tasks.core.spec import Answer, Dataset, Example, ItemT, SettingsT
from bilmo.tasks.network.words import identity as identity_of_words
from bilmo.text.dictionary import Dictionary

NOT_COMPARED = ("epochs", "patience", "dictionary")
"""Settings that may change when a run is resumed: no step depends on them. Of a dictionary, the words are compared."""


def fit(
    task: Estimator[Example, ItemT, Answer, SettingsT],
    folder: Path,
    train: Dataset[Example, Answer],
    dev: Dataset[Example, Answer] | None,
    *,
    model: str,
) -> Iterator[Event]:
    """Fit into a folder, or resume the same run where it stopped; `model` is where the biLM can be found again."""
    training = task.training(train, dev=dev)  # before the folder is made: the examples can be used
    identity = _identity(task, train, dev)
    with open_run(folder, folder / WORK, kind="task run", identity=identity, keeps=[CHECKPOINT]) as run:
        path = run.work / CHECKPOINT
        if path.exists():
            _resume(training, path)
        run.start()
        written: dict[str, str] = {}
        for event in training.events():
            if isinstance(event, Epoch):
                checkpoint.write(path, training.loop.checkpoint())
            if (isinstance(event, Epoch) and event.best) or isinstance(event, Finished):
                written = task_folder.publish(task, folder, model=model, written=written)
            yield event


def _identity(
    task: Estimator[Example, ItemT, Answer, SettingsT],
    train: Dataset[Example, Answer],
    dev: Dataset[Example, Answer] | None,
) -> Identity:
    """The settings and inputs that must be the same when a run is resumed."""
    settings = {name: value for name, value in asdict(task.settings_).items() if name not in NOT_COMPARED}
    examples = [(part.examples, part.answers) if part is not None else None for part in (train, dev)]
    return Identity(
        settings={"task": task.task.name} | settings,
        inputs={
            "the biLM": task.elmo.bundle.identity() if task.elmo is not None else "",
            "the word vectors": identity_of_words(task.vectors),
            "the dictionary": Dictionary(task.prepared_.dictionary).sha256,
            "the examples": hashlib.sha256(json.dumps(examples, default=_plain).encode()).hexdigest(),
            **task.prepared_.inputs(),
        },
    )


def _plain(value: object) -> object:
    """Values that JSON does not have: arrays and scalars of NumPy, and sequences that are not lists."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} cannot be an example or an answer")


def _resume(training: Training[Example, ItemT, Answer, SettingsT], path: Path) -> None:
    saved = checkpoint.read(path, Progress)
    try:
        training.loop.resume(saved)
    except ValueError as error:
        raise DamagedFile(
            f"{path}: belongs to another network than the one that this run trains ({error}). "
            "Remove it to start over from the first epoch."
        ) from None

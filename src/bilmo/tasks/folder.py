"""Save a fitted task to a folder, and load any saved task.

Knows: the list of tasks. Blind to: single tasks.
"""

from __future__ import annotations

from os import PathLike

from bilmo.embed.embedder import Embedder
from bilmo.tasks import all as tasks
from bilmo.tasks.core import task_folder as folders
from bilmo.tasks.core.spec import AnyEstimator
from bilmo.tasks.core.task_folder import files_of as files_of
from bilmo.tasks.core.task_folder import save as save


def load(folder: str | PathLike[str], *, elmo: Embedder | str | PathLike[str] | None = None) -> AnyEstimator:
    """Load a saved task with the biLM it was fitted on.

    elmo: that biLM, or its path; None for the path it had when the task was saved.
    """
    return folders.load(folder, tasks.TASKS, elmo=elmo)

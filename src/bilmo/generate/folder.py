"""Load any saved task, including those that write text.

Knows: the list of tasks. Blind to: single tasks.
"""

from __future__ import annotations

from os import PathLike

from bilmo.embed.embedder import Embedder
from bilmo.generate.all import all_tasks
from bilmo.tasks.core import task_folder as folders
from bilmo.tasks.core.spec import AnyEstimator


def load(folder: str | PathLike[str], *, elmo: Embedder | str | PathLike[str] | None = None) -> AnyEstimator:
    """Load a saved task of any kind with the biLM it was fitted on.

    elmo: that biLM, or its path; None for the path it had when the task was saved.
    """
    return folders.load(folder, all_tasks(), elmo=elmo)

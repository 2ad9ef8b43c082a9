"""Everything that the training of a task needs to resume as if it had never stopped, in one file.

Knows: checkpoint files. Blind to: tasks, networks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from bilmo.store import checkpoint as files
from bilmo.store.checkpoint import with_prefix


@dataclass
class Progress:
    """How far a run is."""

    epoch: int = 0
    best: float | None = None
    """The measure on the dev set after the best epoch."""
    best_epoch: int = 0


@dataclass(frozen=True)
class Checkpoint:
    """A run between two epochs."""

    progress: Progress
    now: dict[str, Tensor]
    """What was learned so far."""
    best: dict[str, Tensor]
    """The same after the best epoch."""
    optimizer: dict[str, Tensor]


def write(path: Path, saved: Checkpoint) -> None:
    """Replace the file as a whole: it holds the old checkpoint or the complete new one."""
    tensors = {f"now/{name}": value for name, value in saved.now.items()}
    tensors |= {f"best/{name}": value for name, value in saved.best.items()}
    tensors |= {f"optimizer/{name}": value for name, value in saved.optimizer.items()}
    files.write(path, tensors, saved.progress)


def read(path: Path) -> Checkpoint:
    """Load what `write` saved."""
    tensors, progress = files.read(path, Progress)
    return Checkpoint(
        progress=progress,
        now=with_prefix("now/", tensors),
        best=with_prefix("best/", tensors),
        optimizer=with_prefix("optimizer/", tensors),
    )

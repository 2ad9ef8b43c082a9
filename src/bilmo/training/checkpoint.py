"""Everything that a training run needs to resume as if it had never stopped, in one file.

Knows: checkpoint files, the state of a network. Blind to: text, recipes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from bilmo.net.state import State
from bilmo.store import checkpoint as files
from bilmo.store.checkpoint import with_prefix


@dataclass
class Progress:
    """Where a run is."""

    epoch: int = 0
    step_in_epoch: int = 0
    steps: int = 0
    """Of the whole run."""
    seconds: float = 0.0
    """Time spent on steps and evaluations, without reading and saving."""
    best: float | None = None
    """The lowest held-out loss, nats per word, mean of both directions."""
    best_known: float | None = None
    """The loss of known words at that evaluation."""
    evaluations_without_improvement: int = 0
    """Since the best one."""
    last_evaluation_step: int | None = None
    skipped: int = 0
    """Steps that exploded and did not change the weights."""
    usual_loss: float | None = None
    """A running mean, nats per word, by which an exploding step is recognised."""
    finished: bool = False


@dataclass(frozen=True)
class Checkpoint:
    """A run at one moment."""

    progress: Progress
    model: dict[str, Tensor]
    average: dict[str, Tensor]
    """The running average of the weights; empty if none is kept."""
    optimizer: dict[str, Tensor]
    state: State | None
    """The state that a stream carries to its next window."""


def write(path: Path, saved: Checkpoint) -> None:
    """Replace the file as a whole: it holds the old checkpoint or the complete new one."""
    tensors = {f"model/{name}": value for name, value in saved.model.items()}
    tensors |= {f"average/{name}": value for name, value in saved.average.items()}
    tensors |= {f"optimizer/{name}": value for name, value in saved.optimizer.items()}
    if saved.state is not None:
        tensors |= {f"state/{name}": value for name, value in saved.state.named().items()}
    files.write(path, tensors, saved.progress)


def read(path: Path) -> Checkpoint:
    """Load what `write` saved."""
    tensors, progress = files.read(path, Progress)
    carried = with_prefix("state/", tensors)
    return Checkpoint(
        progress=progress,
        model=with_prefix("model/", tensors),
        average=with_prefix("average/", tensors),
        optimizer=with_prefix("optimizer/", tensors),
        state=State.from_named(carried) if carried else None,
    )

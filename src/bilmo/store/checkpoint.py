"""A checkpoint: everything that a run needs to resume as if it had never stopped, in one file.

It contains no timestamps.

Knows: safetensors, torch.optim. Blind to: what is trained.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from bilmo.errors import ConfigError, DamagedFile
from bilmo.store.tensors_file import read_hashed, write_hashed
from bilmo.store.validate import checked

CHECKPOINT = "checkpoint.safetensors"
START_OVER = "Remove it to start over from the first step."
Progress = TypeVar("Progress")


@dataclass(frozen=True)
class Checkpoint(Generic[Progress]):
    """A run at one moment."""

    progress: Progress
    """How far the run is: a dataclass of plain values."""
    parts: Mapping[str, Mapping[str, Tensor]]
    """Tensors by name, for each part of the run, such as "model" and "optimizer"."""

    def part(self, name: str) -> dict[str, Tensor]:
        """The tensors of one part; none if the run does not have it."""
        return dict(self.parts.get(name, {}))


def write(path: Path, saved: Checkpoint[Any]) -> None:
    """Replace the file as a whole: it holds the old checkpoint or the complete new one."""
    tensors = {
        f"{part}/{name}": value.detach().clone()  # tensors may share memory, but not in a file
        for part, values in saved.parts.items()
        for name, value in values.items()
    }
    write_hashed(path, tensors, {"progress": json.dumps(asdict(saved.progress))})


def read(path: Path, kind: type[Progress]) -> Checkpoint[Progress]:
    """Load what `write` saved; `kind` is the dataclass of the progress."""
    tensors, about = read_hashed(path, START_OVER)
    try:
        progress = checked(json.loads(about["progress"]), kind, "progress")
    except (KeyError, ValueError, RecursionError, ConfigError) as error:
        raise DamagedFile(f"{path}: is not a checkpoint of this run ({error}). {START_OVER}") from None
    parts: dict[str, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        part, _, rest = name.partition("/")
        # Copied: the alignment in memory decides how a product is rounded, and a run must resume to the bit.
        parts.setdefault(part, {})[rest] = value.clone()
    return Checkpoint(progress, parts)


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The state of an optimizer, named by parameter number and quantity."""
    return {
        f"{number}/{name}": torch.as_tensor(value)
        for number, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
    }


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Load the result of `optimizer_tensors` into an optimizer."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        number, name = key.split("/")
        state.setdefault(int(number), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})

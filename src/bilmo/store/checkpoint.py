"""A checkpoint: tensors and progress in one file, replaced as a whole.

It contains no timestamps.

Knows: safetensors, torch.optim. Blind to: what is trained.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from bilmo.errors import DamagedFile, OutputError
from bilmo.store.atomic import new_file

CHECKPOINT = "checkpoint.safetensors"
Progress = TypeVar("Progress")


def write(path: Path, tensors: Mapping[str, Tensor], progress: Any) -> None:
    """Save tensors by their names and a dataclass of plain values."""
    with new_file(path) as partial:
        try:
            clean = {name: value.detach().clone().contiguous() for name, value in tensors.items()}
            save_file(clean, partial, metadata={"progress": json.dumps(asdict(progress))})
        except SafetensorError as error:
            raise OutputError(f"{path}: the checkpoint cannot be written ({error})") from None


def read(path: Path, kind: type[Progress]) -> tuple[dict[str, Tensor], Progress]:
    """Load what `write` saved; `kind` is the dataclass of the progress."""
    try:
        with safe_open(path, framework="pt") as file:
            progress = kind(**json.loads(file.metadata()["progress"]))
            # Copied: the alignment in memory decides how a product is rounded, and a run must resume to the bit.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise DamagedFile(
            f"{path}: is not a checkpoint of this run ({error}). Remove it to start over from the first step."
        ) from None
    return tensors, progress


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What an optimizer remembers, named by parameter number and quantity."""
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


def with_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}

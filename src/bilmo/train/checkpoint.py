"""All that a run must remember to go on as if it had never stopped, in one file.

No dates and no clocks in it but the seconds trained: two runs that did the same hold the same bytes.

Knows: safetensors, torch.optim. Blind to: text, recipes.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from bilmo.errors import DamagedFile, OutputError, WeightsError
from bilmo.net.state import State
from bilmo.store.atomic import new_file


@dataclass
class Progress:
    """Where a run is."""

    epoch: int = 0
    step: int = 0
    """Within the epoch."""
    steps: int = 0
    """Of the whole run."""
    seconds: float = 0.0
    """Trained so far, looks at held-out text included, reading and saving not."""
    best: float | None = None
    """The lowest held-out loss, nats a word, mean of both directions."""
    looks: int = 0
    """At held-out text since then."""
    looked: int | None = None
    """The step of the last look."""
    skipped: int = 0
    """Steps that were undone."""
    usual_loss: float | None = None
    """A running mean, nats a word, that an exploding step stands out from."""
    finished: bool = False


@dataclass(frozen=True)
class Checkpoint:
    """A run at one moment."""

    progress: Progress
    model: dict[str, Tensor]
    average: dict[str, Tensor]
    optimizer: dict[int, dict[str, Tensor]]
    state: State | None


def write(path: Path, model: nn.Module, average: dict[str, Tensor], optimizer: torch.optim.Optimizer,
          state: State | None, progress: Progress) -> None:  # fmt: skip
    """Save all of it beside, then rename: the file is the old checkpoint or the whole new one."""
    tensors = {f"model/{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"average/{name}": value for name, value in average.items()}
    for number, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{number}/{name}": torch.as_tensor(value) for name, value in values.items()}
    if state is not None:
        tensors |= {f"state/{name}": value for name, value in state.named().items()}
    with new_file(path) as partial:
        try:
            clean = {name: value.detach().clone().contiguous() for name, value in tensors.items()}
            save_file(clean, partial, metadata={"progress": json.dumps(asdict(progress))})
        except SafetensorError as error:
            raise OutputError(f"{path}: the checkpoint cannot be written ({error})") from None


def read(path: Path) -> Checkpoint:
    """Load what `write` saved."""
    try:
        with safe_open(path, framework="pt") as file:
            progress = Progress(**json.loads(file.metadata()["progress"]))
            # Copied, for where values lie in memory decides how a product is rounded, and a run must go on to the bit.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
        carried = _under("state/", tensors)
        state = State.from_named(carried) if carried else None
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, WeightsError) as error:
        raise DamagedFile(
            f"{path}: is no checkpoint of a training run ({error}). "
            "Remove it, and the run begins anew from its first step."
        ) from None
    optimizer: dict[int, dict[str, Tensor]] = {}
    for name, value in _under("optimizer/", tensors).items():
        number, part = name.split("/")
        optimizer.setdefault(int(number), {})[part] = value
    return Checkpoint(
        progress=progress,
        model=_under("model/", tensors),
        average=_under("average/", tensors),
        optimizer=optimizer,
        state=state,
    )


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def restore(optimizer: torch.optim.Optimizer, saved: dict[int, dict[str, Tensor]]) -> None:
    """Give an optimiser its memory back."""
    optimizer.load_state_dict({"state": saved, "param_groups": optimizer.state_dict()["param_groups"]})

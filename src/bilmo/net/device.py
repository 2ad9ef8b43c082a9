"""Devices by name.

Knows: torch. Blind to: what runs on them.
"""

from __future__ import annotations

import torch

from bilmo.errors import ConfigError

DEVICES = ("cpu", "cuda", "mps")


def device_of(name: str | torch.device) -> torch.device:
    """The device of this name; "auto" is a CUDA GPU if torch finds one."""
    name = str(name)
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.partition(":")[0] not in DEVICES:
        raise ConfigError(f"device is {name!r}; accepted: auto, {', '.join(DEVICES)}, or with a number, as in cuda:1")
    try:
        torch.zeros(1, device=name)
        return torch.device(name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = str(error).splitlines()[0].partition(". ")[0]
        raise ConfigError(f"device is {name!r}; torch cannot use it here ({why})") from None

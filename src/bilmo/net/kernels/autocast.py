"""The precision of matrix products that autocast asks for; it does not reach into autograd functions of our own.

Knows: torch. Blind to: what is multiplied.
"""

from __future__ import annotations

import torch


def product_dtype(device: torch.device) -> torch.dtype | None:
    """The dtype of matrix products inside autocast; None outside it, where they have the dtype of their inputs."""
    if torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type):
        return torch.get_autocast_dtype(device.type)
    return None

"""All that the network knows of a batch, layer by layer.

Knows: torch. Blind to: how layers are made and what they are for.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Layers:
    """Layer 0 is the word alone (once for each direction), the others see its context."""

    values: Tensor
    """(L+1, B, T, 2D), zero where there is no token; (L+1, B, T, D) for a network of one direction."""
    mask: Tensor
    """(B, T), True on real tokens."""

    def inside(self) -> Layers:
        """Without the boundaries: what stands between each row's own `<S>` and `</S>`."""
        mask = self.mask[:, 2:]  # a row of n tokens had n + 2
        values = self.values[:, :, 1:-1] * mask.unsqueeze(-1)
        return Layers(values, mask)

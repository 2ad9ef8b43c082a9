"""AllenNLP's names of parameters in a state dict, for modules that keep their parameters as bilmo does.

Knows: torch. Blind to: files, what the parameters are used for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Renamed:
    """One tensor of AllenNLP, the tensors of bilmo that it consists of, and the conversions."""

    theirs: str
    ours: tuple[str, ...]
    to_theirs: Callable[..., Tensor]
    to_ours: Callable[[Tensor], Sequence[Tensor]]


def same(theirs: str, ours: str) -> Renamed:
    """The same tensor."""
    return Renamed(theirs, (ours,), lambda x: x, lambda x: (x,))


def with_row_of_zeros(theirs: str, ours: str) -> Renamed:
    """A table with a first row for padding."""
    return Renamed(theirs, (ours,), lambda x: torch.cat([torch.zeros_like(x[:1]), x]), lambda x: (x[1:],))


def joined(theirs: str, *ours: str) -> Renamed:
    """Several tensors, one below the other."""
    return Renamed(theirs, ours, lambda *parts: torch.cat(parts), lambda x: x.chunk(len(ours)))


def gates(theirs: str, ours: str, forget_bias: float = 0.0) -> Renamed:
    """The blocks of four gates: in, forget, out, new in bilmo; in, forget, new, out in AllenNLP.

    AllenNLP stores the bias of the forget gate with the constant that bilmo adds when the weights are used.
    """

    def swapped(x: Tensor, more: float) -> Tensor:
        first, forget, third, fourth = x.chunk(4)
        return torch.cat([first, forget + more if more else forget, fourth, third])

    return Renamed(theirs, (ours,), lambda x: swapped(x, forget_bias), lambda x: (swapped(x, -forget_bias),))


def rename(module: nn.Module, tensors: Sequence[Renamed]) -> None:
    """Let a module save and load its tensors under AllenNLP's names."""
    module.register_state_dict_post_hook(partial(_saved, tensors))
    module.register_load_state_dict_pre_hook(partial(_loaded, tensors))


def _saved(tensors: Sequence[Renamed], module: nn.Module, state: dict[str, Any], prefix: str, *rest: object) -> None:
    for tensor in tensors:
        parts = [state.pop(prefix + name) for name in tensor.ours]
        with torch.no_grad():
            state[prefix + tensor.theirs] = tensor.to_theirs(*parts)


def _loaded(tensors: Sequence[Renamed], module: nn.Module, state: dict[str, Any], prefix: str, *rest: object) -> None:
    for tensor in tensors:
        if prefix + tensor.theirs in state:
            parts = tensor.to_ours(state.pop(prefix + tensor.theirs))
            state.update(zip((prefix + name for name in tensor.ours), parts, strict=True))

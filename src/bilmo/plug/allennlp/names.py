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
    return Renamed(theirs, (ours,), _itself, _alone)


def with_row_of_zeros(theirs: str, ours: str) -> Renamed:
    """A table with a first row for padding."""
    return Renamed(theirs, (ours,), _with_first_row, _without_first_row)


def joined(theirs: str, *ours: str) -> Renamed:
    """Several tensors, one below the other."""
    return Renamed(theirs, ours, _below_each_other, partial(_equal_parts, len(ours)))


def gates(theirs: str, ours: str, forget_bias: float = 0.0) -> Renamed:
    """The blocks of four gates: in, forget, out, new in bilmo; in, forget, new, out in AllenNLP.

    AllenNLP stores the bias of the forget gate with the constant that bilmo adds when the weights are used.
    """
    return Renamed(theirs, (ours,), partial(_swapped, forget_bias), partial(_swapped_back, forget_bias))


# The conversions are functions of the module, so that a network with these names can be pickled.


def _itself(x: Tensor) -> Tensor:
    return x


def _alone(x: Tensor) -> Sequence[Tensor]:
    return (x,)


def _with_first_row(x: Tensor) -> Tensor:
    return torch.cat([torch.zeros_like(x[:1]), x])


def _without_first_row(x: Tensor) -> Sequence[Tensor]:
    return (x[1:],)


def _below_each_other(*parts: Tensor) -> Tensor:
    return torch.cat(parts)


def _equal_parts(number: int, x: Tensor) -> Sequence[Tensor]:
    return x.chunk(number)


def _swapped(more: float, x: Tensor) -> Tensor:
    first, forget, third, fourth = x.chunk(4)
    return torch.cat([first, forget + more if more else forget, fourth, third])


def _swapped_back(more: float, x: Tensor) -> Sequence[Tensor]:
    return (_swapped(-more, x),)


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

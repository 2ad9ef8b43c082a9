"""Layers to one vector per token: gamma * sum_j s_j h_j, and simpler mixes.

Knows: layers, torch. Blind to: the network, boundaries, tasks.
"""

# L layers above the word, B sentences, T tokens, D one direction (twice that for a token)

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Literal

import torch
from torch import Tensor, nn

from bilmo.errors import ConfigError
from bilmo.net.config import BiLMConfig
from bilmo.net.layers import Layers

How = Literal["weighted", "top", "mean", "concat"] | int | Sequence[int]
Norm = Literal["allennlp", "bilm-tf"]

EPSILON = {"allennlp": 1e-13, "bilm-tf": 1e-12}


class Mix(nn.Module):
    """One vector per token.

    `how` is "weighted" (trained weights, softmax over layers, times a trained scale), "top" (the last layer,
    times a trained scale), "mean" (of all layers), "concat" (layers 1 to L, concatenated), the number of one
    layer, or several numbers for their mean.

    >>> mix = Mix(layers=2, width=512)              # as in the paper; a new one is the plain mean
    >>> mix.output_width
    1024
    >>> Mix(layers=2, width=512, how="concat", word=True).output_width
    2560
    """

    def __init__(
        self,
        *,
        layers: int,
        width: int,
        directions: int = 2,
        how: How = "weighted",
        own: bool = False,
        norm: Norm | None = None,
        dropout: float = 0.0,
        word: bool = False,
    ) -> None:
        """Make a mix for a network of `layers` layers, each `width` wide in each of its `directions`.

        own: separate weights for each direction ("weighted" only).
        norm: every layer is first normalized to mean 0 and variance 1 over all tokens of the batch ("weighted" only).
            A vector then depends on the other sentences of its batch. In "allennlp", boundaries
            count as tokens; in "bilm-tf", they do not.
        dropout: on the result, while training.
        word: put the vector of the word without context in front.
        """
        super().__init__()
        if how == "weighted":
            self.weights = nn.Parameter(torch.zeros(directions if own else 1, layers + 1))
        elif own or norm:
            raise ConfigError(f"own and norm work only with the weighted mix, not with {how!r}")
        if how in ("weighted", "top"):
            self.scale = nn.Parameter(torch.ones(()))
        if norm is not None and norm not in EPSILON:
            raise ConfigError(f"norm is {norm!r}; accepted: {', '.join(EPSILON)}, or None")
        self.layers, self.width, self.directions = layers, width, directions
        self.how, self.norm, self.word = how, norm, word
        self.chosen = self._numbers(how)
        self.dropout = nn.Dropout(dropout)

    @classmethod
    def for_network(
        cls,
        config: BiLMConfig,
        how: How,
        *,
        own: bool = False,
        norm: Norm | None = None,
        dropout: float = 0.0,
        word: bool = False,
    ) -> Mix:
        """A mix for the layers of a network."""
        return cls(
            layers=config.layers,
            width=config.width,
            directions=len(config.directions),
            how=how,
            own=own,
            norm=norm,
            dropout=dropout,
            word=word,
        )

    def _numbers(self, how: How) -> list[int]:
        """The layers that a mix reads."""
        if isinstance(how, str):
            first = {"weighted": 0, "mean": 0, "concat": 1, "top": self.layers}
            if how not in first:
                raise ConfigError(f"mix is {how!r}; accepted: {', '.join(first)}, or layer numbers")
            return list(range(first[how], self.layers + 1))
        numbers = list(how) if isinstance(how, Iterable) else [how]
        if not numbers or not all(isinstance(n, Integral) and 0 <= int(n) <= self.layers for n in numbers):
            raise ConfigError(f"layers are numbered 0 (the word) to {self.layers}; found {how!r}")
        return [int(n) for n in numbers]

    @property
    def output_width(self) -> int:
        """Width of a mixed vector."""
        one = self.width * self.directions
        mixed = one * self.layers if self.how == "concat" else one
        return mixed + (self.width if self.word else 0)

    def extra_repr(self) -> str:
        """The settings of the mix, for `repr`."""
        shown = f"layers={self.layers}, width={self.width}, directions={self.directions}, how={self.how!r}"
        more = {"own": self.how == "weighted" and len(self.weights) > 1, "norm": self.norm, "word": self.word}
        return shown + "".join(f", {name}={value!r}" for name, value in more.items() if value)

    def forward(self, layers: Layers) -> Tensor:
        """(L+1, B, T, 2D) to (B, T, output_width), zero where there is no token."""
        if len(layers.values) != self.layers + 1:
            raise ConfigError(f"this mix needs {self.layers} layers above the word; it got {len(layers.values) - 1}")
        if layers.values.shape[-1] != self.width * self.directions:
            raise ConfigError(
                f"this mix needs vectors of width {self.directions} x {self.width}; it got {layers.values.shape[-1]}"
            )
        values = layers.values[self.chosen[0] :] if self.how == "weighted" else layers.values[self.chosen]
        if self.how == "weighted":
            mixed = self._weighted(self._normed(values, layers.mask))
        elif self.how == "concat":
            mixed = torch.cat(list(values), dim=-1)
        else:
            mixed = values.mean(dim=0)
            if self.how == "top":
                mixed = self.scale * mixed
        if self.word:
            mixed = torch.cat([layers.values[0, ..., : self.width], mixed], dim=-1)
        out: Tensor = self.dropout(mixed * layers.mask.unsqueeze(-1))
        return out

    def _weighted(self, values: Tensor) -> Tensor:
        shares = self.shares.t()  # (L+1, 1 or 2)
        if len(self.weights) > 1:
            shares = shares.repeat_interleave(self.width, dim=1)  # (L+1, 2D)
        mixed = shares[0] * values[0]
        for share, layer in zip(shares[1:], values[1:], strict=True):  # one by one: einsum would copy all layers
            mixed = torch.addcmul(mixed, share, layer)
        return self.scale * mixed

    def _normed(self, values: Tensor, mask: Tensor) -> Tensor:
        if self.norm is None:
            return values
        real = mask.unsqueeze(-1)  # (B, T, 1)
        number = real.sum() * values.shape[-1]
        mean = (values * real).sum(dim=(1, 2, 3), keepdim=True) / number
        variance = ((values - mean) ** 2 * real).sum(dim=(1, 2, 3), keepdim=True) / number
        epsilon = 1e-4 if values.dtype == torch.float16 else EPSILON[self.norm]  # the others are 0 in float16
        return (values - mean) / torch.sqrt(variance + epsilon)

    @property
    def shares(self) -> Tensor:
        """The share of each layer, adding up to 1: (1, L+1), or (2, L+1) with separate weights for each direction."""
        return torch.softmax(self.weights, dim=1)

    def l2(self, strength: float) -> Tensor:
        """strength * sum of squared weights, to add to a loss; the scale stays free."""
        if self.how != "weighted":
            raise ConfigError(f"a mix of kind {self.how!r} has no weights")
        return strength * (self.weights**2).sum()

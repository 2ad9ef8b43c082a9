"""Heads: vectors of tokens to scores of labels, a label a text or a label a token.

Knows: Inputs, Recurrent, Pool, CRF. Blind to: words, what labels mean, how they are trained.
"""

# B texts, T tokens, K labels

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bilmo.errors import ConfigError
from bilmo.tasks.core.settings import Settings
from bilmo.tasks.network.crf import CRF
from bilmo.tasks.network.input import Inputs, WayIn
from bilmo.tasks.network.pool import Pool
from bilmo.tasks.network.recurrent import Recurrent

CLASSIFY = ("mean", "max", "attention", "lstm", "bilstm", "linear")
TAG = ("bilstm-crf", "linear")


def chosen(head: str, known: tuple[str, ...], late_width: int) -> str:
    """The head asked for, or the first; a linear one has no network of its own, so nothing can join its output."""
    head = known[0] if head == "default" else head
    if head not in known:
        raise ConfigError(f"head is {head!r}; known are {', '.join(known)}")
    if head == "linear" and late_width:
        raise ConfigError("a linear head has no network of its own, so ELMo can be joined to its input only")
    return head


class TextHead(nn.Module):
    """A label a text: (LSTM,) pool, dense layers, batch norm, linear.

    The late mix joins the outputs of the LSTM; where there is none, it is pooled and joins those of the dense layers.
    """

    def __init__(self, way_in: WayIn, labels: int, settings: Settings) -> None:
        super().__init__()
        head = chosen(settings.head, CLASSIFY, way_in.late_width)
        width, late = way_in.width, way_in.late_width
        self.recurrent = Recurrent(width, settings.hidden, both=head == "bilstm") if "lstm" in head else None
        if self.recurrent is not None:
            width = self.recurrent.output_width + late
        how = {"max": "max", "attention": "attention", "lstm": "max", "bilstm": "max"}.get(head, "mean")
        self.pool = Pool(how, width)  # type: ignore[arg-type]
        self.late = Pool("mean", late) if late and self.recurrent is None else None
        layers = settings.dense if head in ("mean", "max", "attention") else 0
        sizes = [width, *[settings.hidden] * layers]
        self.dense = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        width = sizes[-1] + (late if self.late is not None else 0)
        self.norm = nn.BatchNorm1d(width) if settings.batch_norm else None
        self.dropout = nn.Dropout(settings.dropout)
        self.last = nn.Linear(width, labels)

    def forward(self, inputs: Inputs) -> Tensor:
        """(B, K) scores."""
        x = inputs.x
        if self.recurrent is not None:
            x = self.recurrent(x, inputs.mask)
            if inputs.late is not None:
                x = torch.cat([x, inputs.late], dim=-1)
        x = self.pool(x, inputs.mask)  # (B, width)
        for layer in self.dense:
            x = self.dropout(F.relu(layer(x)))
        if self.late is not None and inputs.late is not None:
            x = torch.cat([x, self.late(inputs.late, inputs.mask)], dim=-1)
        if self.norm is not None:
            x = self._normed(x)
        scores: Tensor = self.last(x if len(self.dense) else self.dropout(x))
        return scores

    def _normed(self, x: Tensor) -> Tensor:
        assert self.norm is not None
        if self.training and len(x) == 1:  # one text has no spread of its own
            return F.batch_norm(
                x, self.norm.running_mean, self.norm.running_var, self.norm.weight, self.norm.bias, eps=self.norm.eps
            )
        return torch.as_tensor(self.norm(x))


class TokenHead(nn.Module):
    """A label a token: BiLSTM and a chain of tags, or each token alone. Both decode along legal steps only."""

    def __init__(self, way_in: WayIn, legal: Tensor, settings: Settings) -> None:
        super().__init__()
        head = chosen(settings.head, TAG, way_in.late_width)
        width = way_in.width
        self.recurrent = Recurrent(width, settings.hidden, both=True) if head == "bilstm-crf" else None
        if self.recurrent is not None:
            width = self.recurrent.output_width + way_in.late_width
        self.dropout = nn.Dropout(settings.dropout)
        self.last = nn.Linear(width, len(legal) - 1)
        self.crf = CRF(legal, learned=head == "bilstm-crf")

    def forward(self, inputs: Inputs) -> Tensor:
        """(B, T, K) scores of each token alone."""
        x = inputs.x
        if self.recurrent is not None:
            x = self.dropout(self.recurrent(x, inputs.mask))
            if inputs.late is not None:
                x = torch.cat([x, inputs.late], dim=-1)
        scores: Tensor = self.last(x)
        return scores

    def loss(self, scores: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        """Nats a token."""
        if self.recurrent is None:
            return F.cross_entropy(scores[mask], tags[mask]) if mask.any() else scores.sum() * 0
        return self.crf.loss(scores, mask, tags).sum() / mask.sum().clamp(min=1)

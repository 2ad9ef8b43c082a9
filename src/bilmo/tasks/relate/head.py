"""The head of relations: a BiLSTM that knows where both spans are, attention over the text, and both spans.

Knows: LabelHead, TaskInput, Recurrent, Pool. Blind to: data files, how heads are trained.
"""

# B texts, T tokens, K labels, P width of a position

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bilmo.tasks.core.labels import Label
from bilmo.tasks.network.input import TaskInput
from bilmo.tasks.network.label_head import LabelHead
from bilmo.tasks.network.pool import Pool
from bilmo.tasks.network.recurrent import Recurrent
from bilmo.tasks.relate.marks import Span
from bilmo.tasks.relate.settings import RelateSettings
from bilmo.tasks.relate.task import MarkedItem

FARTHEST = 30
"""Tokens that are farther away from a span all have the same position."""
POSITION_WIDTH = 20


class RelationHead(LabelHead[MarkedItem, Label]):
    """Positions relative to both spans, a BiLSTM, attention over all tokens, the mean of each span, a hidden layer.

    The second mix joins the outputs of the BiLSTM.
    """

    def __init__(self, input: TaskInput, labels: Sequence[Label], settings: RelateSettings) -> None:
        super().__init__(labels)
        self.positions = nn.ModuleList(nn.Embedding(2 * FARTHEST + 1, POSITION_WIDTH) for _ in range(2))
        self.recurrent = Recurrent(input.width + 2 * POSITION_WIDTH, settings.hidden, both=True)
        width = self.recurrent.output_width + input.output_width
        self.attention, self.mean = Pool("attention", width), Pool("mean", width)
        self.hidden = nn.Linear(3 * width, settings.hidden)
        self.dropout = nn.Dropout(settings.dropout)
        self.last = nn.Linear(settings.hidden, len(self.labels))

    def scores(self, input: TaskInput, items: Sequence[MarkedItem]) -> Tensor:
        """(B, K): one score per label."""
        inputs = input([item.text for item in items])
        tokens = inputs.mask.shape[1]
        spans = [[item.first for item in items], [item.second for item in items]]
        places = [distances(some, tokens) for some in spans]  # (B, T) each
        parts = [inputs.vectors, *(table(place) for table, place in zip(self.positions, places, strict=True))]
        x = torch.cat(parts, dim=-1) * inputs.mask.unsqueeze(-1)  # (B, T, width + 2P)
        x = self.dropout(self.recurrent(x, inputs.mask))
        if inputs.output_mix is not None:
            x = torch.cat([x, inputs.output_mix], dim=-1)
        pooled = [self.attention(x, inputs.mask), *(self.mean(x, place == FARTHEST) for place in places)]
        x = self.dropout(torch.tanh(self.hidden(torch.cat(pooled, dim=-1))))  # (B, hidden)
        scores: Tensor = self.last(x)
        return scores


def distances(spans: Sequence[Span], tokens: int) -> Tensor:
    """(B, T): how far each token is from the span of its text; FARTHEST inside it, less before it, more after it."""
    place = torch.arange(tokens)
    start = torch.tensor([start for start, _ in spans]).unsqueeze(1)  # (B, 1)
    last = torch.tensor([end - 1 for _, end in spans]).unsqueeze(1)
    away = (place - start).clamp(max=0) + (place - last).clamp(min=0)
    return away.clamp(-FARTHEST, FARTHEST) + FARTHEST

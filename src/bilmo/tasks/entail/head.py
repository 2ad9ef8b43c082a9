"""The head of entailment, of the kind of ESIM: two texts are read, aligned, compared, read again and pooled.

Knows: LabelHead, TaskInput, Recurrent, attention, Pool. Blind to: data files, how heads are trained.
"""

# B pairs, T tokens of the first texts, U tokens of the second ones, K labels, E width of a read token, H hidden

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bilmo.tasks.core.labels import Label
from bilmo.tasks.entail.settings import EntailSettings
from bilmo.tasks.entail.task import PairItem
from bilmo.tasks.network.attention import attention
from bilmo.tasks.network.input import TaskInput, TaskVectors
from bilmo.tasks.network.label_head import LabelHead
from bilmo.tasks.network.pool import Pool
from bilmo.tasks.network.recurrent import Recurrent


class PairHead(LabelHead[PairItem, Label]):
    """BiLSTM, soft alignment, difference and product, a second BiLSTM, mean and max over each text, a hidden layer.

    The second mix joins the outputs of the first BiLSTM, so that the alignment sees it too.
    """

    def __init__(self, input: TaskInput, labels: Sequence[Label], settings: EntailSettings) -> None:
        super().__init__(labels)
        hidden = settings.hidden
        self.encode = Recurrent(input.width, hidden, both=True)
        width = self.encode.output_width + input.output_width
        self.compare = nn.Linear(4 * width, hidden)
        self.compose = Recurrent(hidden, hidden, both=True)
        self.mean, self.max = (Pool(how, self.compose.output_width) for how in ("mean", "max"))
        self.hidden = nn.Linear(4 * self.compose.output_width, hidden)
        self.dropout = nn.Dropout(settings.dropout)
        self.last = nn.Linear(hidden, len(self.labels))

    def scores(self, input: TaskInput, items: Sequence[PairItem]) -> Tensor:
        """(B, K): one score per label."""
        first, second = input([item.first for item in items]), input([item.second for item in items])
        a, b = self._read(first), self._read(second)  # (B, T, E), (B, U, E)
        similar = a @ b.transpose(1, 2)  # (B, T, U)
        a_aligned = attention(similar, second.mask) @ b  # (B, T, E)
        b_aligned = attention(similar.transpose(1, 2), first.mask) @ a  # (B, U, E)
        pooled = [
            pool(composed, mask)  # (B, 2H)
            for composed, mask in (
                (self._compose(a, a_aligned, first.mask), first.mask),
                (self._compose(b, b_aligned, second.mask), second.mask),
            )
            for pool in (self.mean, self.max)
        ]
        x = self.dropout(torch.tanh(self.hidden(self.dropout(torch.cat(pooled, dim=-1)))))  # (B, H)
        scores: Tensor = self.last(x)
        return scores

    def _read(self, text: TaskVectors) -> Tensor:
        """(B, T, E): each token in its own text."""
        x: Tensor = self.encode(text.vectors, text.mask)  # without dropout, which would make the alignment noisy
        return x if text.output_mix is None else torch.cat([x, text.output_mix], dim=-1)

    def _compose(self, own: Tensor, aligned: Tensor, mask: Tensor) -> Tensor:
        """(B, T, 2H): each token with its alignment to the other text, read in the order of its own text."""
        both = torch.cat([own, aligned, own - aligned, own * aligned], dim=-1)  # (B, T, 4E)
        compared = self.dropout(F.relu(self.compare(both))) * mask.unsqueeze(-1)  # (B, T, H)
        composed: Tensor = self.compose(compared, mask)
        return composed

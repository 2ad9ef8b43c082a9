"""The head of classification: vectors of tokens to one label per text.

Knows: LabelHead, TaskInput, Recurrent, Pool. Blind to: data files, how heads are trained.
"""

# B texts, T tokens, K labels

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bilmo.errors import ConfigError
from bilmo.tasks.classify.settings import ClassifySettings
from bilmo.tasks.classify.task import TextItem
from bilmo.tasks.core.labels import Label
from bilmo.tasks.network.input import TaskInput
from bilmo.tasks.network.label_head import LabelHead
from bilmo.tasks.network.pool import How, Pool
from bilmo.tasks.network.recurrent import Recurrent


class TextHead(LabelHead[TextItem, Label]):
    """(LSTM,) pooling, hidden layers, batch normalization, one score per label.

    The second mix joins the outputs of the LSTM; without an LSTM it is pooled and joins those of the hidden layers.
    """

    def __init__(self, input: TaskInput, labels: Sequence[Label], settings: ClassifySettings) -> None:
        super().__init__(labels)
        head, width, output_width = settings.head, input.width, input.output_width
        if head == "linear" and output_width:
            raise ConfigError("a linear head has no network of its own, so ELMo can be concatenated at the input only")
        self.recurrent = Recurrent(width, settings.hidden, both=head == "bilstm") if "lstm" in head else None
        if self.recurrent is not None:
            width = self.recurrent.output_width + output_width
        how: dict[str, How] = {"max": "max", "attention": "attention", "lstm": "max", "bilstm": "max"}
        self.pool = Pool(how.get(head, "mean"), width)
        self.output_pool = Pool("mean", output_width) if output_width and self.recurrent is None else None
        layers = settings.dense if head in ("mean", "max", "attention") else 0
        sizes = [width, *[settings.hidden] * layers]
        self.dense = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        width = sizes[-1] + (output_width if self.output_pool is not None else 0)
        self.norm = nn.BatchNorm1d(width) if settings.batch_norm else None
        self.dropout = nn.Dropout(settings.dropout)
        self.last = nn.Linear(width, len(self.labels))

    def scores(self, input: TaskInput, items: Sequence[TextItem]) -> Tensor:
        """(B, K): one score per label."""
        inputs = input([item.text for item in items])
        x = inputs.vectors
        if self.recurrent is not None:
            x = self.recurrent(x, inputs.mask)
            if inputs.output_mix is not None:
                x = torch.cat([x, inputs.output_mix], dim=-1)
        x = self.pool(x, inputs.mask)  # (B, width)
        for layer in self.dense:
            x = self.dropout(F.relu(layer(x)))
        if self.output_pool is not None and inputs.output_mix is not None:
            x = torch.cat([x, self.output_pool(inputs.output_mix, inputs.mask)], dim=-1)
        if self.norm is not None:
            x = self.norm(x) if len(x) > 1 or not self.training else self._norm_one(self.norm, x)
        scores: Tensor = self.last(x if len(self.dense) else self.dropout(x))
        return scores

    def _norm_one(self, norm: nn.BatchNorm1d, x: Tensor) -> Tensor:
        """A batch of one text has no variance of its own, so it is normalized as in prediction."""
        return F.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)

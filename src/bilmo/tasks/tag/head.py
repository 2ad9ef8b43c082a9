"""The head of tagging: vectors of tokens to one tag per token.

Knows: TaskInput, Recurrent, CRF. Blind to: data files, how heads are trained.
"""

# B texts, T tokens, K tags

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bilmo.errors import ConfigError
from bilmo.tasks.data import spans
from bilmo.tasks.network.crf import CRF
from bilmo.tasks.network.head import Head
from bilmo.tasks.network.input import TaskInput
from bilmo.tasks.network.probabilities import TagProbabilities
from bilmo.tasks.network.recurrent import Recurrent
from bilmo.tasks.tag.settings import TagSettings
from bilmo.tasks.tag.task import SentenceItem, Tags


class TagHead(Head[SentenceItem, Tags]):
    """A BiLSTM and a CRF, or each token alone. Both predict legal sequences of tags only."""

    def __init__(self, input: TaskInput, tags: Sequence[str], scheme: spans.Scheme, settings: TagSettings) -> None:
        """`tags` are those that the network predicts; its answers are converted from BIOES to `scheme`."""
        super().__init__()
        crf = settings.head == "bilstm-crf"
        if not crf and input.output_width:
            raise ConfigError("a linear head has no network of its own, so ELMo can be concatenated at the input only")
        self.tags, self.scheme = tuple(tags), scheme
        self.recurrent = Recurrent(input.width, settings.hidden, both=True) if crf else None
        width = self.recurrent.output_width + input.output_width if self.recurrent is not None else input.width
        self.dropout = nn.Dropout(settings.dropout)
        self.last = nn.Linear(width, len(self.tags))
        around = [*self.tags, spans.OUTSIDE]  # the last stands for the start and the end of a sentence
        legal = [[scheme == "plain" or spans.may_follow(a, b) for b in around] for a in around]
        self.crf = CRF(torch.tensor(legal), learned=crf)

    def scores(self, input: TaskInput, items: Sequence[SentenceItem]) -> tuple[Tensor, Tensor]:
        """(B, T, K): one score per token and tag; and the mask (B, T)."""
        inputs = input([item.text for item in items])
        x = inputs.vectors
        if self.recurrent is not None:
            x = self.dropout(self.recurrent(x, inputs.mask))
            if inputs.output_mix is not None:
                x = torch.cat([x, inputs.output_mix], dim=-1)
        return self.last(x), inputs.mask

    def loss(self, input: TaskInput, items: Sequence[SentenceItem]) -> Tensor:
        """Nats per token."""
        scores, mask = self.scores(input, items)
        tags = torch.zeros(mask.shape, dtype=torch.long)
        tags[mask] = torch.tensor([tag for item in items for tag in item.tags], dtype=torch.long)
        if self.recurrent is None:
            return F.cross_entropy(scores[mask], tags[mask]) if mask.any() else scores.sum() * 0
        return self.crf.loss(scores, mask, tags).sum() / mask.sum().clamp(min=1)

    def predict(self, input: TaskInput, items: Sequence[SentenceItem]) -> list[Tags]:
        """The best legal tags of each sentence, in the scheme of the training data."""
        found: list[Tags] = [[self.tags[k] for k in path] for path in self.crf.best(*self.scores(input, items))]
        if self.scheme == "plain":
            return found
        return [spans.write(spans.spans(tags), len(tags), self.scheme) for tags in found]

    def confidence(self, input: TaskInput, items: Sequence[SentenceItem]) -> list[TagProbabilities]:
        """For each token the probability of the tag that `predict` gives it."""
        scores, mask = self.scores(input, items)
        values = self.crf.probabilities(scores, mask)
        paths = self.crf.best(scores, mask)
        return [
            TagProbabilities([float(values[row, t, k]) for t, k in enumerate(path)]) for row, path in enumerate(paths)
        ]

    def probabilities(self, input: TaskInput, items: Sequence[SentenceItem]) -> list[list[list[float]]]:
        """For each token the probability of each tag that the network predicts."""
        scores, mask = self.scores(input, items)
        values = self.crf.probabilities(scores, mask)
        return [row[: int(length)].tolist() for row, length in zip(values, mask.sum(dim=1), strict=True)]

"""The head of role labelling: finds predicates, and predicts one tag per word for each of them.

Knows: TaskInput, recurrent layers, CRF. Blind to: data files, how heads are trained.
"""

# B sentences, T tokens, K tags, R predicates of all sentences

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bilmo.tasks.data import spans
from bilmo.tasks.data.frame_columns import PREDICATE
from bilmo.tasks.data.frames import Frame
from bilmo.tasks.network.batch import tokens_of
from bilmo.tasks.network.crf import CRF
from bilmo.tasks.network.head import Head
from bilmo.tasks.network.input import TaskInput, TaskVectors
from bilmo.tasks.network.probabilities import TagProbabilities
from bilmo.tasks.network.recurrent import DeepRecurrent
from bilmo.tasks.network.rows import chosen_rows
from bilmo.tasks.roles.settings import RolesSettings
from bilmo.tasks.roles.task import Frames, RolesItem

LAYER_DROPOUT = 0.1
"""Dropout between the BiLSTM layers."""
ROW_TOKENS = 16_384
"""Maximum number of tokens, padding included, for which tags are predicted at a time."""
Predicate = tuple[int, int]
"""The number of a sentence in the batch, and the position of the predicate in it."""


class RolesHead(Head[RolesItem, Frames]):
    """A deep BiLSTM with highway connections. Its lower half reads each sentence once, and finds the predicates in it.

    Its upper half reads the sentence once per predicate, whose word is marked. Tags are decoded by a Viterbi search
    over legal BIO, in which the predicate has the tag B-V, and no other word has it.
    """

    def __init__(self, input: TaskInput, tags: Sequence[str], settings: RolesSettings) -> None:
        super().__init__()
        self.tags = tuple(tags)
        hidden, upper = settings.hidden, settings.depth // 2
        self.lower = DeepRecurrent(input.width, hidden, settings.depth - upper, dropout=LAYER_DROPOUT)
        self.find = nn.Linear(2 * hidden + input.output_width, 1)
        self.mark = nn.Embedding(2, 2 * hidden)
        self.upper = DeepRecurrent(2 * hidden, hidden, upper, dropout=LAYER_DROPOUT)
        self.dropout = nn.Dropout(settings.dropout)
        self.last = nn.Linear(2 * hidden + input.output_width, len(self.tags))
        around = [*self.tags, spans.OUTSIDE]  # the last stands for the start and the end of a sentence
        legal = [[spans.may_follow_in_bio(a, b) for b in around] for a in around]
        self.crf = CRF(torch.tensor(legal), learned=False)

    def cost(self, item: RolesItem) -> int:
        """A sentence is read once, and once per predicate."""
        return tokens_of(item) * (1 + len(item.frames))

    def loss(self, input: TaskInput, items: Sequence[RolesItem]) -> Tensor:
        """Nats per word: of its tag, and of whether it is a predicate."""
        read = self.read(input, items)
        if not read.mask.any():
            return self.find.weight.sum() * 0
        predicates = [(k, index) for k, item in enumerate(items) for index, _ in item.frames]
        wanted = torch.zeros(read.mask.shape)
        for place in predicates:
            wanted[place] = 1
        loss = F.binary_cross_entropy_with_logits(self.predicate_scores(read)[read.mask], wanted[read.mask])
        if predicates:
            scores, mask = self.tag_scores(read, predicates)
            tags = torch.tensor([tag for item in items for _, tags in item.frames for tag in tags])
            loss = loss + F.cross_entropy(scores[mask], tags)
        return loss

    def read(self, input: TaskInput, items: Sequence[RolesItem]) -> TaskVectors:
        """The sentences after the lower half."""
        inputs: TaskVectors = input([item.text for item in items])
        return replace(inputs, vectors=self.lower(inputs.vectors, inputs.mask))

    def predicate_scores(self, read: TaskVectors) -> Tensor:
        """(B, T): above 0 where a word is a predicate."""
        scores: Tensor = self.find(self._with_mix(read.vectors, read.output_mix)).squeeze(-1)
        return scores

    def tag_scores(self, read: TaskVectors, predicates: Sequence[Predicate]) -> tuple[Tensor, Tensor]:
        """(R, T, K): for each predicate one score per word and tag; and the mask (R, T)."""
        rows = torch.tensor([k for k, _ in predicates])
        marks = torch.zeros(len(rows), read.mask.shape[1], dtype=torch.long)
        marks[torch.arange(len(rows)), torch.tensor([index for _, index in predicates])] = 1
        mask = read.mask[rows]  # (R, T)
        x = self.upper(chosen_rows(read.vectors, rows) + self.mark(marks), mask)  # (R, T, 2 * hidden)
        mix = None if read.output_mix is None else chosen_rows(read.output_mix, rows)
        return self.last(self._with_mix(x, mix)), mask

    def _with_mix(self, x: Tensor, output_mix: Tensor | None) -> Tensor:
        """The output of the task's own network, and the second mix."""
        x = self.dropout(x)
        return x if output_mix is None else torch.cat([x, output_mix], dim=-1)

    def predict(self, input: TaskInput, items: Sequence[RolesItem]) -> list[Frames]:
        """The frames of each sentence, in the order of their predicates."""
        found: list[list[Frame]] = [[] for _ in items]
        for predicates, scores, mask in self._decodable(input, items):
            for (k, index), path in zip(predicates, self.crf.best(scores, mask), strict=True):
                found[k].append(Frame(index, [self.tags[tag] for tag in path]))
        return list(found)

    def confidence(self, input: TaskInput, items: Sequence[RolesItem]) -> list[TagProbabilities]:
        """For each sentence the probabilities of all predicted tags, one frame after the other."""
        found: list[TagProbabilities] = [TagProbabilities([]) for _ in items]
        for predicates, scores, mask in self._decodable(input, items):
            values, paths = self.crf.probabilities(scores, mask), self.crf.best(scores, mask)
            for row, ((k, _), path) in enumerate(zip(predicates, paths, strict=True)):
                found[k] += [float(values[row, t, tag]) for t, tag in enumerate(path)]
        return found

    def _decodable(
        self, input: TaskInput, items: Sequence[RolesItem]
    ) -> Iterator[tuple[Sequence[Predicate], Tensor, Tensor]]:
        """Some predicates at a time, with scores that allow B-V at the predicate only, and nothing else there."""
        read = self.read(input, items)
        positive = (self.predicate_scores(read) > 0) & read.mask
        predicates: list[Predicate] = []
        for k, item in enumerate(items):
            found = positive[k].nonzero().flatten().tolist() if item.marked is None else item.marked
            predicates += [(k, index) for index in found]
        verb = self.tags.index(f"B-{PREDICATE}")
        size = max(1, ROW_TOKENS // read.mask.shape[1])
        for at in range(0, len(predicates), size):
            some = predicates[at : at + size]
            scores, mask = self.tag_scores(read, some)
            allowed = torch.ones_like(scores, dtype=torch.bool)
            allowed[:, :, verb] = False
            for row, (_, index) in enumerate(some):
                allowed[row, index] = False
                allowed[row, index, verb] = True
            yield some, scores.masked_fill(~allowed, float("-inf")), mask

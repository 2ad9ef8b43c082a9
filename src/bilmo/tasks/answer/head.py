"""The head of answering questions: bidirectional attention flow, self-attention, and the best legal span.

Knows: TaskInput, Recurrent, attention. Blind to: data files, how heads are trained.
"""

# B questions, R windows of all contexts, T tokens of a window, J tokens of a question, E width of a read token,
# H hidden

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bilmo.tasks.answer.settings import AnswerSettings
from bilmo.tasks.answer.task import AnswerItem, Answers
from bilmo.tasks.data.squad import Span
from bilmo.tasks.network.attention import Similarity, attention
from bilmo.tasks.network.batch import tokens_of
from bilmo.tasks.network.head import Head
from bilmo.tasks.network.input import TaskInput, TaskVectors
from bilmo.tasks.network.pool import MINUS, Pool
from bilmo.tasks.network.probabilities import LabelProbabilities
from bilmo.tasks.network.recurrent import Recurrent
from bilmo.tasks.network.rows import chosen_rows

ROW_TOKENS = 16_384
"""Maximum number of tokens of all windows, padding included, that are scored at a time in prediction."""


@dataclass(frozen=True)
class Window:
    """Some tokens of a context."""

    row: int
    """The number of the question in the batch."""
    first: int
    size: int


@dataclass(frozen=True)
class Scores:
    """The scores of windows: a span has the sum of those of its first and its last token."""

    starts: Tensor
    """(R, T), very low on padding."""
    ends: Tensor
    """(R, T)"""

    def total(self) -> Tensor:
        """(R,): the log of the sum over all spans that do not end before they start."""
        from_here = torch.logcumsumexp(self.ends.flip(1), dim=1).flip(1)  # (R, T): over all ends from a start on
        return torch.logsumexp(self.starts + from_here, dim=1)

    def best(self, longest: int) -> list[tuple[float, int, int]]:
        """For each window the best span of at most `longest` tokens: its score, first and last token."""
        padded = F.pad(self.ends, (0, longest - 1), value=2 * MINUS)
        best_end, distance = padded.unfold(1, longest, 1).max(dim=2)  # (R, T): the best end for each start
        score, first = (self.starts + best_end).max(dim=1)  # (R,)
        last = first + distance.gather(1, first.unsqueeze(1)).squeeze(1)
        return list(zip(score.tolist(), first.tolist(), last.tolist(), strict=True))


class AnswerHead(Head[AnswerItem, Answers]):
    """A BiLSTM over question and context, attention in both directions, self-attention, scores of starts and ends.

    The second mix joins the outputs of the first BiLSTM, so that the attention sees it too. A long context is read as a
    whole by the first BiLSTM, and compared with the question in windows, whose spans compete with each other.
    """

    def __init__(self, input: TaskInput, no_answer: bool, settings: AnswerSettings) -> None:
        super().__init__()
        hidden, self.longest = settings.hidden, settings.longest
        self.encode = Recurrent(input.width, hidden, both=True)
        width = self.encode.output_width + input.output_width
        self.flow, self.join = Similarity(width), nn.Linear(4 * width, 2 * hidden)
        self.again, self.self_flow = Recurrent(2 * hidden, hidden, both=True), Similarity(2 * hidden)
        self.self_join = nn.Linear(6 * hidden, 2 * hidden)
        self.start_layer, self.start = Recurrent(2 * hidden, hidden, both=True), nn.Linear(2 * hidden, 1)
        self.end_layer, self.end = Recurrent(4 * hidden, hidden, both=True), nn.Linear(2 * hidden, 1)
        self.pool = Pool("attention", 2 * hidden) if no_answer else None
        self.no_answer = nn.Linear(2 * hidden, 1) if no_answer else None
        self.dropout = nn.Dropout(settings.dropout)

    def cost(self, item: AnswerItem) -> int:
        """The tokens of all windows, and those of the question."""
        return sum(size for _, size in item.windows) + tokens_of(item) - len(item.offsets)

    def scores(self, context: Tensor, question: Tensor, mask: Tensor, asked: Tensor) -> Scores:
        """Scores of windows (R, T, E) with masks (R, T), and of their questions (R, J, E) with masks (R, J).

        Where questions may have no answer, all scores of a window are relative to that of no answer, which is 0.
        """
        similar = self.flow(context, question)  # (R, T, J)
        asked_for = attention(similar, asked) @ question  # (R, T, E)
        nearest = similar.masked_fill(~asked.unsqueeze(1), MINUS).amax(dim=2) * asked.any(dim=1, keepdim=True)  # (R, T)
        summary = attention(nearest.unsqueeze(1), mask) @ context  # (R, 1, E)
        x = F.relu(
            self.join(torch.cat([context, asked_for, context * asked_for, context * summary], dim=-1))
        )  # (R, T, 2H)
        y = self.again(self.dropout(x), mask)
        others = mask.unsqueeze(1) & ~torch.eye(mask.shape[1], dtype=torch.bool)  # (R, T, T): not to itself
        same = attention(self.self_flow(y, y), others) @ y
        x = x + F.relu(self.self_join(torch.cat([y, same, y * same], dim=-1)))
        started = self.start_layer(self.dropout(x), mask)
        ended = self.end_layer(self.dropout(torch.cat([x, started], dim=-1)), mask)  # (R, T, 2H)
        starts, ends = self.start(started).squeeze(-1), self.end(ended).squeeze(-1)  # (R, T)
        if self.no_answer is not None and self.pool is not None:
            starts = starts - self.no_answer(self.pool(x, mask))
        return Scores(starts.masked_fill(~mask, MINUS), ends.masked_fill(~mask, MINUS))

    def _read(self, text: TaskVectors) -> Tensor:
        """(B, T, E): each token in its own text."""
        x: Tensor = self.encode(text.vectors, text.mask)
        return x if text.output_mix is None else torch.cat([x, text.output_mix], dim=-1)

    def _windows(self, input: TaskInput, items: Sequence[AnswerItem]) -> Iterator[tuple[list[Window], Scores]]:
        """The windows of all contexts and their scores; some at a time in prediction."""
        texts, questions = input([item.text for item in items]), input([item.question for item in items])
        context, question = self._read(texts), self._read(questions)
        windows = [Window(row, *window) for row, item in enumerate(items) for window in item.windows]
        longest = max(1, *(window.size for window in windows))
        most = len(windows) if self.training else max(1, ROW_TOKENS // longest)
        for at in range(0, len(windows), most):
            some = windows[at : at + most]
            rows = torch.tensor([window.row for window in some])
            token = torch.arange(max(1, *(window.size for window in some)))
            mask = token < torch.tensor([window.size for window in some])[:, None]  # (R, T)
            places = (torch.tensor([window.first for window in some])[:, None] + token) * mask  # (R, T)
            cut = chosen_rows(context.flatten(0, 1), rows.unsqueeze(1) * context.shape[1] + places)  # (R, T, E)
            yield some, self.scores(cut * mask.unsqueeze(-1), chosen_rows(question, rows), mask, questions.mask[rows])

    def loss(self, input: TaskInput, items: Sequence[AnswerItem]) -> Tensor:
        """Nats per question: of the correct answers among all spans of all windows, and no answer."""
        ((windows, scores),) = self._windows(input, items)
        totals = scores.total()  # (R,)
        losses = []
        for number, item in enumerate(items):
            rows = [k for k, window in enumerate(windows) if window.row == number]
            learnable = item.answers is not None and (len(item.answers) > 0 or self.no_answer is not None)
            if item.answers is None or not learnable:
                continue
            correct = [
                scores.starts[k, first - windows[k].first] + scores.ends[k, last - windows[k].first]
                for k in rows
                for first, last in item.answers
                if windows[k].first <= first and last < windows[k].first + windows[k].size
            ]
            none = [totals.new_zeros(())] if self.no_answer is not None else []
            total = torch.logsumexp(torch.stack([*totals[rows], *none]), dim=0)
            losses.append(total - torch.logsumexp(torch.stack(correct or none), dim=0))
        return torch.stack(losses).mean() if losses else totals.sum() * 0

    def predict(self, input: TaskInput, items: Sequence[AnswerItem]) -> list[Answers]:
        """The best span of each context; none if it has no tokens, or if no answer has a higher score."""
        return [answers for answers, _ in self._best(input, items)]

    def confidence(self, input: TaskInput, items: Sequence[AnswerItem]) -> list[LabelProbabilities]:
        """For each question the probability of its answer."""
        return [LabelProbabilities([share]) for _, share in self._best(input, items)]

    def _best(self, input: TaskInput, items: Sequence[AnswerItem]) -> list[tuple[Answers, float]]:
        """The answer to each question, and its probability among all spans of all windows."""
        best: list[tuple[float, int, int]] = [(0.0 if self.no_answer is not None else 2 * MINUS, -1, -1)] * len(items)
        sums = [[torch.zeros(())] if self.no_answer is not None else [] for _ in items]
        for windows, scores in self._windows(input, items):
            for window, total, (score, first, last) in zip(
                windows, scores.total(), scores.best(self.longest), strict=True
            ):
                if window.size:
                    sums[window.row].append(total)
                    place = window.first + first, window.first + last
                    best[window.row] = max(best[window.row], (score, *place), key=lambda found: found[0])
        found: list[tuple[Answers, float]] = []
        for item, (score, first, last), totals in zip(items, best, sums, strict=True):
            share = float(torch.exp(score - torch.logsumexp(torch.stack(totals), dim=0))) if totals else 1.0
            if first < 0:
                found.append(([], share))
                continue
            begin, end = item.offsets[first][0], item.offsets[last][1]
            found.append(([Span(begin, end, item.context[begin:end])], share))
        return found

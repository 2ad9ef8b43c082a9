"""The head of coreference: end-to-end span ranking (Lee et al. 2017, 2018).

Every span of a sentence up to some width has a mention score s_m. The best ones are kept. Each kept span i chooses an
antecedent j among the earlier ones, or none:

    s(i, j) = s_m(i) + s_m(j) + s_c(i, j) + s_a(i, j),    s(i, none) = 0

s_c is a product of two span vectors, which is cheap, and chooses the antecedents that s_a compares in detail. Linked
spans are one cluster.

Knows: TaskInput, Recurrent. Blind to: data files, how heads are trained.
"""

# N tokens of a document, P spans, M kept spans, A antecedents, F width of hidden layers

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from bilmo.tasks.coref.settings import CorefSettings
from bilmo.tasks.coref.task import DocumentItem
from bilmo.tasks.data.documents import Clusters, Mention, ordered
from bilmo.tasks.network.head import Head
from bilmo.tasks.network.input import TaskInput
from bilmo.tasks.network.probabilities import MentionProbabilities
from bilmo.tasks.network.recurrent import Recurrent

HIDDEN = 150
"""Width of the hidden layers over spans and pairs of spans."""
FEATURE = 20
"""Width of the vector of a distance or a number of tokens."""
DROPOUT = 0.2
"""In the hidden layers over spans."""
DISTANCES = (1, 2, 3, 4, 5, 8, 16, 32, 64)
"""Where classes of distances begin, in kept spans."""
STEEPEST = 10.0
"""Bound of the scores of head words, so that no word of a span loses all its weight."""
RARE = -2.0
"""The mention score to start from: most spans are not mentions."""


@dataclass(frozen=True)
class Kept:
    """The spans of a document that may be mentions, in the order of the text."""

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    scores: Tensor
    """(M,): s_m."""
    links: Tensor
    """(M, A + 1): the score of no antecedent, which is 0, and of each one; minus infinity where there are fewer."""
    antecedents: Tensor
    """(M, A): their numbers among the kept spans."""

    def mentions(self) -> list[Mention]:
        """The spans as pairs."""
        return list(zip(self.first.tolist(), self.last.tolist(), strict=True))


class SpanHead(Head[DocumentItem, Clusters]):
    """A BiLSTM over each sentence, scores of spans, scores of pairs of spans."""

    def __init__(self, input: TaskInput, settings: CorefSettings, *, singletons: bool) -> None:
        """`singletons`: whether a mention that is linked to no other is a cluster too."""
        super().__init__()
        self.singletons = singletons
        self.span_width, self.share, self.most = settings.span_width, settings.spans_per_token, settings.antecedents
        self.recurrent = Recurrent(input.width, settings.hidden, both=True)
        width = self.recurrent.output_width + input.output_width
        self.dropout, self.span_dropout = nn.Dropout(settings.dropout), nn.Dropout(DROPOUT)
        self.head_words = nn.Sequential(nn.Linear(width, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))
        self.widths = nn.Embedding(settings.span_width, FEATURE)
        self.distances = nn.Embedding(len(DISTANCES), FEATURE)
        # The first layer over [first token ; last token ; head word ; number of tokens] is linear, so it is applied to
        # tokens, before spans are made of them.
        self.of_first = nn.Linear(width, HIDDEN)
        self.of_last = nn.Linear(width, HIDDEN, bias=False)
        self.of_head = nn.Linear(input.width, HIDDEN, bias=False)
        self.of_width = nn.Linear(FEATURE, HIDDEN, bias=False)
        self.mention = nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Dropout(DROPOUT))
        self.mention_score = nn.Linear(HIDDEN, 1)
        nn.init.constant_(self.mention_score.bias, RARE)
        self.coarse = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.of_span = nn.Linear(HIDDEN, HIDDEN)
        self.of_antecedent = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.of_product = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.of_distance = nn.Linear(FEATURE, HIDDEN, bias=False)
        self.pair = nn.Sequential(nn.ReLU(), nn.Dropout(DROPOUT), nn.Linear(HIDDEN, 1))

    def _documents(
        self, input: TaskInput, items: Sequence[DocumentItem]
    ) -> Iterator[tuple[DocumentItem, Tensor, Tensor]]:
        """The input vectors and the outputs of the BiLSTM for the tokens of each document; sentences are read alone."""
        found = input([[sentence] for item in items for sentence in item.text])
        outputs = self.dropout(self.recurrent(found.vectors, found.mask))
        if found.output_mix is not None:
            outputs = torch.cat([outputs, found.output_mix], dim=-1)
        lengths = [sum(map(len, item.text)) for item in items]
        vectors, outputs = found.vectors[found.mask], outputs[found.mask]  # (all tokens, width)
        yield from zip(items, vectors.split(lengths), outputs.split(lengths), strict=True)

    def _spans(
        self, item: DocumentItem, vectors: Tensor, outputs: Tensor
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Tensor]:
        """All spans: first tokens, last tokens, and the first layer over each (P, F); ordered by width."""
        ends = np.repeat(np.cumsum([len(sentence) for sentence in item.text]), [len(s) for s in item.text])  # (N,)
        of_first, of_last, of_head = self.of_first(outputs), self.of_last(outputs), self.of_head(vectors)
        weight = torch.exp(STEEPEST * torch.tanh(self.head_words(outputs) / STEEPEST))  # (N, 1)
        of_width = self.of_width(self.widths.weight)  # (W, F)
        weighted = weight * of_head
        sums, weights = weighted, weight
        firsts, lasts, found = [], [], []
        for wide in range(min(self.span_width, int(max(map(len, item.text))))):
            if wide:  # one more token to the right
                sums, weights = sums[:-1] + weighted[wide:], weights[:-1] + weight[wide:]
            first = np.flatnonzero(np.arange(len(ends)) + wide < ends)
            at = torch.from_numpy(first)
            found.append(of_first[at] + of_last[at + wide] + sums[at] / weights[at] + of_width[wide])
            firsts.append(first)
            lasts.append(first + wide)
        return np.concatenate(firsts), np.concatenate(lasts), self.span_dropout(F.relu(torch.cat(found)))

    def scored(self, item: DocumentItem, vectors: Tensor, outputs: Tensor) -> tuple[Kept, Tensor, NDArray[np.int64]]:
        """The kept spans with their links; and for all spans s_m (P,) and the spans (P, 2)."""
        first, last, hidden = self._spans(item, vectors, outputs)
        scores = self.mention_score(self.mention(hidden)).squeeze(-1)  # (P,)
        most = max(1, round(self.share * len(vectors)))
        kept = keep(first, last, scores.detach().numpy(), most)
        at = torch.from_numpy(kept)
        spans, own = hidden[at], scores[at]  # (M, F), (M,)
        number = min(self.most, max(1, len(kept) - 1))
        earlier = torch.ones(len(kept), len(kept), dtype=torch.bool).tril(-1)
        coarse = own.unsqueeze(1) + own.unsqueeze(0) + self.coarse(spans) @ spans.T  # (M, M)
        coarse = coarse.masked_fill(~earlier, -torch.inf)
        best, antecedents = coarse.topk(number, dim=1)  # (M, A)
        real = torch.isfinite(best)
        antecedents = antecedents.masked_fill(~real, 0)
        distance = (torch.arange(len(kept)).unsqueeze(1) - antecedents).clamp(min=1)
        of_distance = self.of_distance(self.distances.weight)[
            torch.bucketize(distance, torch.tensor(DISTANCES), right=True) - 1
        ]
        products = spans.unsqueeze(1) * spans[antecedents]  # (M, A, F)
        pairs = self.of_span(spans).unsqueeze(1) + self.of_antecedent(spans)[antecedents] + of_distance
        links = best.masked_fill(~real, 0) + self.pair(pairs + self.of_product(products)).squeeze(-1)
        links = F.pad(links.masked_fill(~real, -torch.inf), (1, 0))  # no antecedent: 0
        return Kept(first[kept], last[kept], own, links, antecedents), scores, np.stack([first, last], axis=1)

    def loss(self, input: TaskInput, items: Sequence[DocumentItem]) -> Tensor:
        """Nats per token: for the choice of an antecedent of each kept span, and for whether a span is a mention."""
        filled = [item for item in items if item.text]
        if not filled:
            return self.mention_score.bias.sum() * 0
        total, tokens = torch.zeros(()), 0
        for item, vectors, outputs in self._documents(input, filled):
            kept, scores, spans = self.scored(item, vectors, outputs)
            cluster = {span: number for number, one in enumerate(item.clusters, start=1) for span in one}
            own = torch.tensor([cluster.get(span, 0) for span in kept.mentions()])  # (M,), 0 outside of clusters
            right = (
                (own[kept.antecedents] == own.unsqueeze(1)) & (own > 0).unsqueeze(1) & torch.isfinite(kept.links[:, 1:])
            )
            right = torch.cat([~right.any(dim=1, keepdim=True), right], dim=1)
            chosen = kept.links.masked_fill(~right, -torch.inf).logsumexp(dim=1)
            total = total + (kept.links.logsumexp(dim=1) - chosen).sum()
            true = torch.tensor([tuple(span) in cluster for span in spans.tolist()], dtype=torch.float32)
            total = total + F.binary_cross_entropy_with_logits(scores, true, reduction="sum")
            tokens += len(vectors)
        return total / tokens

    def predict(self, input: TaskInput, items: Sequence[DocumentItem]) -> list[Clusters]:
        """The clusters of each document."""
        return [clusters for clusters, _ in self._answers(input, items)]

    def confidence(self, input: TaskInput, items: Sequence[DocumentItem]) -> list[MentionProbabilities]:
        """For each mention, cluster by cluster, the probability that it is one."""
        return [
            MentionProbabilities([shares[mention] for cluster in clusters for mention in cluster])
            for clusters, shares in self._answers(input, items)
        ]

    def _answers(
        self, input: TaskInput, items: Sequence[DocumentItem]
    ) -> Iterator[tuple[Clusters, dict[Mention, float]]]:
        filled = self._documents(input, [item for item in items if item.text])
        for item in items:
            if not item.text:
                yield [], {}
                continue
            kept, _, _ = self.scored(*next(filled))
            mentions = kept.mentions()
            choice = (kept.links.argmax(dim=1) - 1).tolist()
            links = [(k, int(kept.antecedents[k, a])) for k, a in enumerate(choice) if a >= 0]
            alone = [k for k, score in enumerate(kept.scores.tolist()) if self.singletons and score > 0]
            groups = linked(len(mentions), links, alone)
            shares = dict(zip(mentions, torch.sigmoid(kept.scores).tolist(), strict=True))
            yield ordered([mentions[k] for k in group] for group in groups), shares


def keep(
    first: NDArray[np.int64], last: NDArray[np.int64], scores: NDArray[np.float32], most: int
) -> NDArray[np.int64]:
    """The numbers of the best spans, none of which cross, in the order of the text.

    Two spans cross if they overlap and neither contains the other.
    """
    # For each token: the last token of the longest kept span that begins there, and the first of the longest that ends.
    size = int(last.max()) + 1
    reach, begin = np.full(size, -1), np.full(size, size)
    found: list[int] = []
    for k in np.argsort(-scores, kind="stable").tolist():
        a, b = int(first[k]), int(last[k])
        if (reach[a + 1 : b + 1] > b).any() or (begin[a:b] < a).any():
            continue
        reach[a], begin[b] = max(reach[a], b), min(begin[b], a)
        found.append(k)
        if len(found) == most:
            break
    return np.array(sorted(found, key=lambda k: (first[k], last[k])), dtype=np.int64)


def linked(number: int, links: Sequence[tuple[int, int]], alone: Sequence[int]) -> list[list[int]]:
    """Groups of numbers that links connect; numbers without a link only if they are in `alone`."""
    group = list(range(number))
    for later, earlier in links:  # in the order of the text, so that the group of the earlier one is final
        group[later] = group[earlier]
    found: dict[int, list[int]] = {}
    for k, one in enumerate(group):
        found.setdefault(one, []).append(k)
    single = set(alone)
    return [members for members in found.values() if len(members) > 1 or members[0] in single]

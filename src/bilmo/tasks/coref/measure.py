"""How good clusters are: MUC, B-cubed, CEAF-e, and the mean of their F1, as in CoNLL-2012.

Sums of all documents are taken before any ratio, as the official scorer does. A ratio whose denominator is 0 is 0.

Knows: scores. Blind to: networks, documents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bilmo.errors import need
from bilmo.tasks.core.measure import LabelScore, Score
from bilmo.tasks.data.documents import Clusters, Mention

Sums = tuple[float, float]
"""Numerator and denominator of a recall."""


def coref_score(true: Sequence[Clusters], predicted: Sequence[Clusters]) -> Score:
    """The mean F1 of the three measures; each of them with and without clusters of one mention."""
    details = []
    means = []
    for what, least in (("", 1), (" without singletons", 2)):
        pairs = [(_larger(a, least), _larger(b, least)) for a, b in zip(true, predicted, strict=True)]
        f1s = []
        for name, recall in MEASURES.items():
            r, p = _ratio([recall(a, b) for a, b in pairs]), _ratio([recall(b, a) for a, b in pairs])
            f1 = 2 * p * r / (p + r) if p + r else 0.0
            f1s.append(f1)
            details += [(f"{name} precision{what}", p), (f"{name} recall{what}", r), (f"{name} F1{what}", f1)]
        means.append(sum(f1s) / len(f1s))
    details.append(("mean F1 without singletons", means[1]))
    return Score("mean F1", means[0], details, [_mentions(true, predicted)], {})


def _larger(clusters: Clusters, least: int) -> list[set[Mention]]:
    return [set(cluster) for cluster in clusters if len(set(cluster)) >= least]


def _ratio(sums: Sequence[Sums]) -> float:
    numerator, denominator = (sum(column) for column in zip(*sums, strict=True)) if sums else (0.0, 0.0)
    return numerator / denominator if denominator else 0.0


def _mentions(true: Sequence[Clusters], predicted: Sequence[Clusters]) -> LabelScore:
    correct = found = wanted = 0
    for a, b in zip(true, predicted, strict=True):
        own, other = ({mention for cluster in clusters for mention in cluster} for clusters in (a, b))
        correct += len(own & other)
        found += len(other)
        wanted += len(own)
    return LabelScore("mention", correct, found, wanted)


# The recall of each measure; with both arguments exchanged it is the precision.


def muc(key: Sequence[set[Mention]], response: Sequence[set[Mention]]) -> Sums:
    """Links: a cluster of n mentions has n - 1, and each further part that the response divides it into costs one."""
    home = _home(response)
    numerator = denominator = 0
    for cluster in key:
        found = [home[mention] for mention in cluster if mention in home]
        parts = len(set(found)) + len(cluster) - len(found)  # a mention that is not found is a part of its own
        numerator += len(cluster) - parts
        denominator += len(cluster) - 1
    return numerator, denominator


def b_cubed(key: Sequence[set[Mention]], response: Sequence[set[Mention]]) -> Sums:
    """Mentions: the share of each mention's cluster that is also in its cluster of the response."""
    home = _home(response)
    numerator = 0.0
    for cluster in key:
        for mention in cluster:
            if mention in home:
                numerator += len(cluster & response[home[mention]]) / len(cluster)
    return numerator, sum(map(len, key))


def ceaf_e(key: Sequence[set[Mention]], response: Sequence[set[Mention]]) -> Sums:
    """Clusters: the similarity of the best one-to-one alignment of clusters, 2 |K & R| / (|K| + |R|) for each pair."""
    if not key or not response:
        return 0.0, len(key)
    home = _home(response)
    similarity = np.zeros((len(key), len(response)))
    for k, cluster in enumerate(key):
        for r in {home[mention] for mention in cluster if mention in home}:
            similarity[k, r] = 2 * len(cluster & response[r]) / (len(cluster) + len(response[r]))
    assign = need("scipy.optimize", extra="coref", purpose="Measuring coreference").linear_sum_assignment
    return float(similarity[assign(similarity, maximize=True)].sum()), len(key)


def _home(clusters: Sequence[set[Mention]]) -> dict[Mention, int]:
    return {mention: number for number, cluster in enumerate(clusters) for mention in cluster}


MEASURES: dict[str, Callable[[Sequence[set[Mention]], Sequence[set[Mention]]], Sums]] = {
    "MUC": muc,
    "B3": b_cubed,
    "CEAF-e": ceaf_e,
}

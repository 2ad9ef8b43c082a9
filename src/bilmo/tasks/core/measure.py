"""How good predictions are: accuracy; precision, recall and F1 per label; a confusion table; span F1 as conlleval.

A ratio whose denominator is 0 is 0.

Knows: spans. Blind to: networks, how predictions were made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bilmo.tasks.data.spans import Scheme, spans, write


@dataclass(frozen=True)
class LabelScore:
    """One label: how often it is true, predicted, and both."""

    label: str
    correct: int
    predicted: int
    true: int

    @property
    def precision(self) -> float:
        """Share of the predictions that are correct."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the true ones that are predicted."""
        return self.correct / self.true if self.true else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 2 * self.correct / (self.predicted + self.true) if self.correct else 0.0


@dataclass(frozen=True)
class Score:
    """A task's measure, and its details."""

    name: str
    """Such as accuracy or span F1."""
    value: float
    """From 0 to 1; higher is better."""
    details: list[tuple[str, float]]
    """Other measures."""
    labels: list[LabelScore]
    """One row per label."""
    confusion: dict[tuple[str, str], int]
    """(true, predicted) to how often; empty for spans."""
    percent: bool = False
    """Whether the measure is usually shown as a number from 0 to 100."""
    notes: Sequence[str] = ()
    """How it was computed, where that varies."""


def by_label(true: Sequence[str], predicted: Sequence[str]) -> Score:
    """One label per item: accuracy, and the mean of precision, recall and F1 over all labels that occur."""
    correct = Counter(t for t, p in zip(true, predicted, strict=True) if t == p)
    rows = _rows(correct, Counter(predicted), Counter(true))
    number = max(1, len(rows))
    macro = [
        ("macro precision", sum(row.precision for row in rows) / number),
        ("macro recall", sum(row.recall for row in rows) / number),
        ("macro F1", sum(row.f1 for row in rows) / number),
    ]
    accuracy = correct.total() / len(true) if len(true) else 0.0
    return Score("accuracy", accuracy, macro, rows, dict(Counter(zip(true, predicted, strict=True))))


def by_span(true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], scheme: Scheme | None = None) -> Score:
    """Span F1 exactly as conlleval counts: a span is correct when its type, its start and its end are.

    scheme: the scheme of the predictions where the true tags use another; token accuracy is then computed in it.
    """
    correct: Counter[str] = Counter()
    found: Counter[str] = Counter()
    wanted: Counter[str] = Counter()
    tokens = equal = 0
    for true_tags, predicted_tags in zip(true, predicted, strict=True):
        a, b = spans(true_tags), spans(predicted_tags)
        wanted.update(kind for kind, _, _ in a)
        found.update(kind for kind, _, _ in b)
        correct.update(kind for kind, _, _ in set(a) & set(b))
        tokens += len(true_tags)
        tags = true_tags if scheme is None else write(a, len(true_tags), scheme)
        equal += sum(t == p for t, p in zip(tags, predicted_tags, strict=True))
    whole = LabelScore("all", correct.total(), found.total(), wanted.total())
    details = [
        ("precision", whole.precision),
        ("recall", whole.recall),
        ("token accuracy", equal / tokens if tokens else 0.0),
    ]
    return Score("span F1", whole.f1, details, _rows(correct, found, wanted), {})


def by_token(true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> Score:
    """One label per token: token accuracy."""
    pairs = [(t, p) for x, y in zip(true, predicted, strict=True) for t, p in zip(x, y, strict=True)]
    return by_label([t for t, _ in pairs], [p for _, p in pairs])


def _rows(correct: Counter[str], predicted: Counter[str], true: Counter[str]) -> list[LabelScore]:
    labels = sorted(predicted.keys() | true.keys())
    return [LabelScore(label, correct[label], predicted[label], true[label]) for label in labels]

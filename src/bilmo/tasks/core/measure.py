"""How good answers are: accuracy, precision, recall and F1 by label, a confusion table, and span F1 as conlleval.

Where nothing was found, or nothing was there to be found, a ratio is 0.

Knows: spans. Blind to: networks, how answers were made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bilmo.tasks.data.spans import Scheme, spans, write


@dataclass(frozen=True)
class Row:
    """One label: how often it was right, answered, and true."""

    label: str
    right: int
    answered: int
    true: int

    @property
    def precision(self) -> float:
        """Share of the answers that are right."""
        return self.right / self.answered if self.answered else 0.0

    @property
    def recall(self) -> float:
        """Share of the true ones that were found."""
        return self.right / self.true if self.true else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 2 * self.right / (self.answered + self.true) if self.right else 0.0


@dataclass(frozen=True)
class Score:
    """A task's own measure, and what stands behind it."""

    name: str
    """accuracy or span F1."""
    value: float
    """From 0 to 1; the more the better."""
    facts: list[tuple[str, float]]
    """Other measures."""
    rows: list[Row]
    """A row a label."""
    confusion: dict[tuple[str, str], int]
    """(true, answered) to how often; empty for spans."""


def by_label(true: Sequence[str], answers: Sequence[str]) -> Score:
    """One label an item: accuracy, and the mean of precision, recall and F1 over all labels that occur."""
    right = Counter(t for t, a in zip(true, answers, strict=True) if t == a)
    rows = _rows(right, Counter(answers), Counter(true))
    accuracy = sum(right.values()) / len(true) if len(true) else 0.0
    macro = [
        (f"macro {name}", sum(getattr(row, field) for row in rows) / max(1, len(rows)))
        for name, field in (("precision", "precision"), ("recall", "recall"), ("F1", "f1"))
    ]
    return Score("accuracy", accuracy, macro, rows, dict(Counter(zip(true, answers, strict=True))))


def by_span(true: Sequence[Sequence[str]], answers: Sequence[Sequence[str]], scheme: Scheme | None = None) -> Score:
    """Span F1 exactly as conlleval counts: a span is right when its type, its begin and its end are.

    scheme: of the answers, where the true tags came in another; their tokens are then compared in this one.
    """
    right: Counter[str] = Counter()
    found: Counter[str] = Counter()
    there: Counter[str] = Counter()
    tokens = equal = 0
    for of_true, of_answers in zip(true, answers, strict=True):
        a, b = spans(of_true), spans(of_answers)
        there.update(kind for kind, _, _ in a)
        found.update(kind for kind, _, _ in b)
        right.update(kind for kind, _, _ in set(a) & set(b))
        tokens += len(of_true)
        tags = of_true if scheme is None else write(a, len(of_true), scheme)
        equal += sum(t == g for t, g in zip(tags, of_answers, strict=True))
    rows = _rows(right, found, there)
    whole = Row("all", right.total(), found.total(), there.total())
    facts = [
        ("precision", whole.precision),
        ("recall", whole.recall),
        ("token accuracy", equal / tokens if tokens else 0.0),
    ]
    return Score("span F1", whole.f1, facts, rows, {})


def by_token(true: Sequence[Sequence[str]], answers: Sequence[Sequence[str]]) -> Score:
    """A label a token: token accuracy."""
    pairs = [(t, a) for x, y in zip(true, answers, strict=True) for t, a in zip(x, y, strict=True)]
    return by_label([t for t, _ in pairs], [a for _, a in pairs])


def _rows(right: Counter[str], answered: Counter[str], true: Counter[str]) -> list[Row]:
    labels: Iterable[str] = sorted(answered.keys() | true.keys())
    return [Row(label, right[label], answered[label], true[label]) for label in labels]

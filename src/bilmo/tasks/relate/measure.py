"""The official measure of SemEval-2010 task 8: the mean of the F1 of all relations.

A relation counts as one in both directions, but a prediction with the wrong direction is wrong. Other is left out.

Knows: Score. Blind to: networks, how predictions were made.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from bilmo.tasks.core.measure import LabelScore, Score

DIRECTION = re.compile(r"\((e1,e2|e2,e1)\)$")
NO_RELATION = frozenset(["other", "no_relation"])
"""Labels of texts without a relation, in lower case."""


def relation_of(label: str) -> str:
    """A label without its direction."""
    return DIRECTION.sub("", label)


def by_relation(true: Sequence[str], predicted: Sequence[str]) -> Score:
    """Macro F1 over the relations that occur in the true labels; one row per relation, Other included."""
    pairs = list(zip(true, predicted, strict=True))
    correct = Counter(relation_of(t) for t, p in pairs if t == p)
    wanted, found = Counter(map(relation_of, true)), Counter(map(relation_of, predicted))
    rows = [LabelScore(name, correct[name], found[name], wanted[name]) for name in sorted(wanted.keys() | found.keys())]
    counted = [row for row in rows if row.true and row.label.lower() not in NO_RELATION]
    number = max(1, len(counted))
    details = [
        ("macro precision", sum(row.precision for row in counted) / number),
        ("macro recall", sum(row.recall for row in counted) / number),
        ("accuracy", correct.total() / max(1, len(pairs))),
    ]
    value = sum(row.f1 for row in counted) / number
    return Score("macro F1", value, details, rows, dict(Counter(pairs)))

"""How good predicted roles are: F1 over (predicate, role, span), counted as srl-eval.pl does.

- The predicate itself (V) is not counted.
- A span C-X continues the last span of role X before it. Both are one argument, which is correct only as a whole.
  Without an X before it, C-X counts as X.
- R-X is a role of its own.
- A predicted predicate that is not a true one: its arguments count as wrong. srl-eval.pl, which expects the true
  predicates, leaves them out.

Knows: spans, scores. Blind to: networks, files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from bilmo.tasks.core.measure import LabelScore, Score
from bilmo.tasks.data import spans
from bilmo.tasks.data.frame_columns import PREDICATE
from bilmo.tasks.data.frames import Frame

CONTINUES = "C-"
Argument = tuple[str, tuple[tuple[int, int], ...]]
"""A role, and the first and last token of each of its parts."""


def arguments(tags: Sequence[str]) -> list[Argument]:
    """The arguments in the tags of one frame, that of the predicate itself left out."""
    found: list[tuple[str, list[tuple[int, int]]]] = []
    last: dict[str, int] = {}  # for each role the number of its last argument
    for kind, start, end in spans.spans(tags):
        role = kind.removeprefix(CONTINUES)
        if kind.startswith(CONTINUES) and role in last:
            found[last[role]][1].append((start, end))
            continue
        last[role] = len(found)
        found.append((role, [(start, end)]))
    return [(role, tuple(parts)) for role, parts in found if role != PREDICATE]


def by_argument(true: Sequence[Sequence[Frame]], predicted: Sequence[Sequence[Frame]]) -> Score:
    """F1 over all arguments, and one row per role; the F1 of the predicates where they are not the true ones."""
    correct: Counter[str] = Counter()
    found: Counter[str] = Counter()
    wanted: Counter[str] = Counter()
    frames = whole = 0
    predicates = LabelScore("predicates", 0, 0, 0)
    for a, b in _by_predicate(true, predicted):
        predicates = _added(predicates, a is not None, b is not None)
        gold, guess = arguments(a or ()), arguments(b or ())
        wanted.update(role for role, _ in gold)
        found.update(role for role, _ in guess)
        correct.update(role for role, _ in set(gold) & set(guess))
        frames += a is not None
        whole += a is not None and b is not None and set(gold) == set(guess)
    total = LabelScore("all", correct.total(), found.total(), wanted.total())
    details = [
        ("precision", total.precision),
        ("recall", total.recall),
        ("predicates with all roles correct", whole / frames if frames else 0.0),
    ]
    if predicates.f1 < 1:  # otherwise they were marked, or all of them were found
        details.append(("F1 of the predicates", predicates.f1))
    roles = sorted(found.keys() | wanted.keys())
    rows = [LabelScore(role, correct[role], found[role], wanted[role]) for role in roles]
    return Score("role F1", total.f1, details, rows, {})


Tags = Sequence[str]


def _by_predicate(
    true: Sequence[Sequence[Frame]], predicted: Sequence[Sequence[Frame]]
) -> Iterator[tuple[Tags | None, Tags | None]]:
    """The true and the predicted tags of each predicate; None where one of them has no such predicate."""
    for a, b in zip(true, predicted, strict=True):
        gold, guess = {frame.predicate: frame.tags for frame in a}, {frame.predicate: frame.tags for frame in b}
        for index in sorted(gold.keys() | guess.keys()):
            yield gold.get(index), guess.get(index)


def _added(score: LabelScore, true: bool, predicted: bool) -> LabelScore:
    both = true and predicted
    return LabelScore(score.label, score.correct + both, score.predicted + predicted, score.true + true)

"""Precision, recall and F1 of predicted senses, as the official scorer of the unified evaluation framework counts.

A prediction is correct if it is one of the gold keys of its word. Precision is the share of the predictions that are
correct, recall the share of the words with gold keys that are.

Knows: labelled words. Blind to: how senses are chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bilmo.sense.labelled.corpus import Use
from bilmo.sense.labelled.inventory import Inventory
from bilmo.tasks.core.measure import LabelScore, Score

NAMES = {"n": "noun", "v": "verb", "a": "adjective", "r": "adverb"}


def sense_score(uses: Sequence[Use], chosen: Sequence[tuple[str | None, bool]], inventory: Inventory) -> Score:
    """The score of chosen senses; words without gold keys are not counted.

    chosen: for each use its sense, None for no answer, and whether that is only the first sense.
    """
    correct: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    wanted: Counter[str] = Counter()
    first = fallbacks = 0
    for use, (key, fallback) in zip(uses, chosen, strict=True):
        if not use.senses:
            continue
        pos = NAMES[use.lemma.pos]
        wanted[pos] += 1
        answered[pos] += key is not None
        correct[pos] += key in use.senses
        fallbacks += fallback and key is not None
        first += inventory.first(use.lemma) in use.senses
    whole = LabelScore("all", correct.total(), answered.total(), wanted.total())
    details = [
        ("precision", whole.precision),
        ("recall", whole.recall),
        ("always the first sense, F1", first / whole.true if whole.true else 0.0),
    ]
    notes = [f"{fallbacks:,} of {whole.true:,} words are not in the training text and got their first sense"]
    rows = [LabelScore(pos, correct[pos], answered[pos], wanted[pos]) for pos in NAMES.values() if wanted[pos]]
    return Score("F1", whole.f1, details, rows, {}, percent=True, notes=notes)

"""How good answers are: exact match and F1, as the official script of SQuAD 2.0 computes them.

Answers are compared in lower case, without punctuation, articles and repeated white space. Of several correct answers
the one that fits best counts. "No answer" is an answer: it is right or wrong. The script of SQuAD 1.1 differs only for
answers of which nothing is left, such as "The".

Knows: scores. Blind to: networks, files.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

from bilmo.tasks.core.measure import LabelScore, Score

PUNCTUATION = str.maketrans("", "", string.punctuation)
ARTICLES = re.compile(r"\b(a|an|the)\b")
ANSWER, NO_ANSWER = "answer", "no answer"


def normalized(text: str) -> str:
    """A text as it is compared."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def exact_match(true: str, predicted: str) -> float:
    """1 if both are the same, otherwise 0."""
    return float(normalized(true) == normalized(predicted))


def f1(true: str, predicted: str) -> float:
    """The F1 of the words that both have."""
    a, b = normalized(true).split(), normalized(predicted).split()
    if not a or not b:
        return float(a == b)
    common = (Counter(a) & Counter(b)).total()
    return 2 * common / (len(a) + len(b)) if common else 0.0


def by_answer(true: Sequence[Sequence[str]], predicted: Sequence[str]) -> Score:
    """Means over all questions.

    true: for each question the texts of all correct answers; none if it has no answer.
    predicted: one text per question, empty for no answer.
    """
    gold = [[text for text in texts if normalized(text)] or [""] for texts in true]
    pairs = list(zip(gold, predicted, strict=True))
    exact = [max(exact_match(text, found) for text in texts) for texts, found in pairs]
    shared = [max(f1(text, found) for text in texts) for texts, found in pairs]
    details = [("exact match", _mean(exact))]
    answerable = [texts != [""] for texts in gold]
    if all(answerable):
        return Score("F1", _mean(shared), details, [], {})
    for name, wanted in (("questions with an answer", True), ("questions without an answer", False)):
        chosen = [k for k, found in enumerate(answerable) if found == wanted]
        details += [
            (f"exact match, {name}", _mean([exact[k] for k in chosen])),
            (f"F1, {name}", _mean([shared[k] for k in chosen])),
        ]
    answered = [bool(text) for text in predicted]
    rows = [
        LabelScore(
            name,
            sum(a == b == wanted for a, b in zip(answerable, answered, strict=True)),
            answered.count(wanted),
            answerable.count(wanted),
        )
        for name, wanted in ((ANSWER, True), (NO_ANSWER, False))
    ]
    return Score("F1", _mean(shared), details, rows, {})


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0

"""The common part of tasks with one label per example: checked labels, their measure, and lines of predictions.

Knows: Prepared, measures. Blind to: torch, what an example is.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from bilmo.errors import TextError
from bilmo.tasks.core import html
from bilmo.tasks.core.measure import Score, by_label
from bilmo.tasks.core.spec import Example, ItemT, Prepared, SettingsT, check_labels
from bilmo.tasks.data.rows import row
from bilmo.tasks.network.probabilities import Probabilities

Label = str | int | bool
LABEL_TYPES = (str, int, bool)
Labels = tuple[bool, ...] | tuple[int, ...] | tuple[str, ...]
"""Distinct labels of one type."""


@dataclass(frozen=True, kw_only=True)
class PreparedLabels(Prepared[Example, ItemT, Label, SettingsT]):
    """Facts learned from the training examples of such a task: the labels, and how texts are split."""

    columns: ClassVar[tuple[str, ...]]
    """The names of the columns that show an example, in a table of predictions."""
    labels: Labels
    lang: str
    """How strings are split."""

    def __post_init__(self) -> None:
        check_labels(self.labels)

    @abstractmethod
    def cells(self, example: Example) -> list[str]:
        """An example in the columns of a table."""

    @abstractmethod
    def fields(self, example: Example) -> dict[str, object]:
        """An example in JSON."""

    def paragraphs(self, example: Example) -> list[str]:
        """An example in HTML."""
        return list(map(html.escaped, self.cells(example)))

    def check(self, examples: Sequence[Example], answers: Sequence[Label]) -> list[Label]:
        """Labels must have the type of the trained ones."""
        kind = type(self.labels[0])
        return check_type(answers, kind, f"of the trained type, {kind.__name__}")

    def numbers(self, answers: Sequence[Label] | None, examples: int) -> Sequence[int | None]:
        """The number of each label; None for each example without labels."""
        if answers is None:
            return [None] * examples
        numbers = {label: number for number, label in enumerate(self.labels)}
        return [numbers[answer] for answer in answers]

    def count(self, answers: Iterable[Label]) -> dict[str, int]:
        """How often each label occurs."""
        return dict(sorted(Counter(map(str, answers)).items()))

    def known(self) -> set[str]:
        """The trained labels."""
        return set(map(str, self.labels))

    def measure(self, true: Sequence[Label], predicted: Sequence[Label]) -> Score:
        """Accuracy; precision, recall and F1 per label; a confusion table."""
        return by_label(list(map(str, true)), list(map(str, predicted)))

    def header(self, form: str, *, probabilities: bool) -> str | None:
        """Names of columns; JSONL has none."""
        if form == "jsonl":
            return None
        return row(["label", *(self.labels if probabilities else ()), *self.columns], form)

    def lines(
        self,
        examples: Sequence[Example],
        answers: Sequence[Label],
        probabilities: Sequence[Probabilities] | None,
        form: str,
        number: int,
    ) -> Iterator[str]:
        """One line per example."""
        known = {label: k for k, label in enumerate(self.labels)}
        all_shares = probabilities if probabilities is not None else [()] * len(examples)
        for example, label, shares in zip(examples, answers, all_shares, strict=True):
            if form == "jsonl":
                entry: dict[str, object] = {"label": label} | self.fields(example)
                if probabilities is not None:
                    entry["probabilities"] = {
                        str(name): round(share, 6) for name, share in zip(self.labels, shares, strict=True)
                    }
                yield json.dumps(entry, ensure_ascii=False)
            elif form == "html":
                colour, name = known[label], str(label)
                badge = html.Mark(0, len(name), colour, probability=shares[colour] if shares else None)
                yield html.article([html.marked(name, [badge]), *self.paragraphs(example)])
            else:
                yield row([label, *(f"{share:.4f}" for share in shares), *self.cells(example)], form)


def labels_of(answers: Sequence[Label]) -> tuple[Labels, list[Label]]:
    """The distinct labels of training examples, sorted; and all labels as plain values."""
    first = answers[0]
    kind = type(first.item() if isinstance(first, np.generic) else first)
    checked = check_type(answers, kind, "all strings, all integers or all booleans")
    labels = sorted(set(checked))
    if len(labels) < 2:
        raise TextError(f"every example has the label {labels[0]!r}; there is nothing to learn")
    return cast("tuple[str, ...]", tuple(labels)), checked  # of one type, whichever it is


def check_type(answers: Sequence[Label], kind: type, needed: str) -> list[Label]:
    """Labels as plain values of one type; NumPy's scalars become Python's."""
    labels = [answer.item() if isinstance(answer, np.generic) else answer for answer in answers]
    for label in labels:
        if type(label) is not kind or kind not in LABEL_TYPES:
            raise TextError(f"a label is {label!r} ({type(label).__name__}); labels must be {needed}")
    return labels

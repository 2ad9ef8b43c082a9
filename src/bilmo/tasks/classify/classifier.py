"""A label for a text.

Knows: Task, the head for texts, how raw text is split. Blind to: files, the command line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from bilmo.errors import TextError
from bilmo.ids.batch import Sentence, listed
from bilmo.tasks.core import splitting
from bilmo.tasks.core.estimator import Task
from bilmo.tasks.core.measure import Score, by_label
from bilmo.tasks.core.settings import Settings
from bilmo.tasks.network.feed import Text, TextBatch
from bilmo.tasks.network.heads import TextHead
from bilmo.tasks.network.input import WayIn
from bilmo.text.split import splitter

LABELS = (str, int, bool)
"""What a label may be."""


class Classifier(Task):
    """Learns labels of texts, and gives them to others.

    >>> Classifier(elmo, vectors="glove.txt").fit(texts, labels).predict(texts)        # doctest: +SKIP

    A text is a string, which is split into sentences and words, or a list of words. Labels are strings, whole numbers
    or truth values, and are answered as what they are.
    """

    name = "classify"
    kind = "classifier"
    labels_: list[Any]
    lang_: str
    """How strings are split."""

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, as scikit-learn asks for them."""
        return np.array(self.labels_)

    def _checked(self, raw: Sequence[Any], answers: Sequence[Any], *, learned: bool) -> list[Any]:
        labels = [answer.item() if isinstance(answer, np.generic) else answer for answer in answers]
        kind = type(self.labels_[0] if learned else labels[0])
        wrong = next((label for label in labels if type(label) is not kind or kind not in LABELS), None)
        if wrong is not None:
            needed = f"like those learned, {kind.__name__}" if learned else "all strings, whole numbers or truth values"
            raise TextError(f"a label is {wrong!r} ({type(wrong).__name__}); labels must be {needed}")
        return labels

    def _learn_forms(self, raw: Sequence[Any], answers: Sequence[Any], settings: Settings) -> list[str]:
        strings = [text for text in raw if isinstance(text, str)]
        rows = (line for text in strings for line in text.split("\n"))
        self.lang_ = splitting.chosen(settings.lang, rows, splitting.of_model(self.elmo))
        if settings.lang == "auto" and not strings:  # it learns from words, so words are what it expects
            self.lang_ = "spaces"
        self.labels_ = sorted(set(answers))
        if len(self.labels_) < 2:
            raise TextError(f"every example has the label {self.labels_[0]!r}; there is nothing to learn")
        return []

    def _texts(self, raw: Sequence[Any]) -> list[Text]:
        split = splitter(self.lang_)
        tokens = iter(listed([text for text in raw if not isinstance(text, str)]))
        found: list[Text] = []
        for text in raw:
            if isinstance(text, str):
                sentences: list[Sentence] = [sentence for line in text.split("\n") for sentence in split(line)]
            else:
                sentences = [next(tokens)]
            found.append([sentence for sentence in sentences if sentence])
        return found

    def _counted(self, answers: Sequence[Any]) -> dict[str, int]:
        return dict(sorted(Counter(map(str, answers)).items()))

    def _known(self) -> set[str]:
        return set(map(str, self.labels_))

    def _head(self, way_in: WayIn, settings: Settings) -> nn.Module:
        return TextHead(way_in, len(self.labels_), settings)

    def _scores(self, batch: TextBatch) -> Tensor:
        scores: Tensor = self.network_["head"](self.network_["way_in"](batch))
        return scores  # (B, K)

    def _loss(self, batch: TextBatch, answers: Sequence[Any]) -> Tensor:
        numbers = {label: k for k, label in enumerate(self.labels_)}
        return F.cross_entropy(self._scores(batch), torch.tensor([numbers[answer] for answer in answers]))

    def _answer(self, batch: TextBatch) -> list[Any]:
        return [self.labels_[k] for k in self._scores(batch).argmax(dim=1).tolist()]

    def _likely(self, batch: TextBatch) -> list[list[float]]:
        found: list[list[float]] = torch.softmax(self._scores(batch), dim=1).tolist()
        return found

    def predict_proba(self, texts: Sequence[Any]) -> NDArray[np.float64]:
        """(texts, labels): how likely each label is, in the order of `labels_`."""
        return np.array(super().predict_proba(texts), dtype=np.float64).reshape(len(texts), len(self.labels_))

    def measure(self, true: Sequence[Any], answers: Sequence[Any]) -> Score:
        """Accuracy; precision, recall and F1 by label; a confusion table."""
        return by_label(list(map(str, true)), list(map(str, answers)))

    def facts(self) -> dict[str, Any]:
        """Labels, and how text is split."""
        return {"labels": self.labels_, "lang": self.lang_}

    def _set_facts(self, facts: dict[str, Any]) -> None:
        self.labels_, self.lang_ = list(facts["labels"]), str(facts["lang"])

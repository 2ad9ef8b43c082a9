"""The estimator of classification.

Knows: Estimator. Blind to: files, the command line.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bilmo.tasks.classify.settings import ClassifySettings
from bilmo.tasks.classify.task import CLASSIFY, Label, PreparedClassify, TextItem
from bilmo.tasks.core.estimator import Estimator
from bilmo.tasks.data.labelled import RawText


class Classifier(Estimator[RawText, TextItem, Label, ClassifySettings]):
    """Predicts one label per text.

    >>> Classifier(elmo, vectors="glove.txt").fit(texts, labels).predict(texts)        # doctest: +SKIP

    A text is a string, which is split into sentences and tokens, or a list of tokens. Labels are strings, integers or
    booleans, and predictions are an array of the same type.
    """

    task = CLASSIFY
    prepared_: PreparedClassify

    @property
    def labels_(self) -> list[Label]:
        """The labels, sorted."""
        return list(self.prepared_.labels)

    @property
    def lang_(self) -> str:
        """How strings are split."""
        return self.prepared_.lang

    @property
    def classes_(self) -> NDArray[np.generic]:
        """The labels, as scikit-learn expects them."""
        return np.array(self.labels_)

    def predict(self, texts: Sequence[RawText]) -> NDArray[np.generic]:
        """(texts,): one label per text, in order, as a numpy array with the type of the labels."""
        return np.array(self.answers(texts), dtype=self.classes_.dtype)

    def predict_proba(self, texts: Sequence[RawText]) -> NDArray[np.float64]:
        """(texts, labels): the probability of each label, in the order of `labels_`."""
        return np.array(self.confidence(texts), dtype=np.float64).reshape(len(texts), len(self.labels_))

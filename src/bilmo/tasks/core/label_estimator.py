"""The estimator of tasks with one label per example.

Knows: Estimator, PreparedLabels. Blind to: single tasks, files, the command line.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bilmo.tasks.core.estimator import Estimator
from bilmo.tasks.core.labels import Label, PreparedLabels
from bilmo.tasks.core.spec import Example, ItemT, SettingsT


class LabelEstimator(Estimator[Example, ItemT, Label, SettingsT]):
    """Predicts one label per example. Labels are strings, integers or booleans, and keep their type."""

    prepared_: PreparedLabels[Example, ItemT, SettingsT]

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

    def predict(self, texts: Sequence[Example]) -> NDArray[np.generic]:
        """(texts,): one label per example, in order, as a numpy array with the type of the labels."""
        return np.array(self.answers(texts), dtype=self.classes_.dtype)

    def predict_proba(self, texts: Sequence[Example]) -> NDArray[np.float64]:
        """(texts, labels): the probability of each label, in the order of `labels_`."""
        return np.array(self.confidence(texts), dtype=np.float64).reshape(len(texts), len(self.labels_))

"""The estimator of classification.

Knows: LabelEstimator. Blind to: files, the command line.
"""

from __future__ import annotations

from bilmo.tasks.classify.settings import ClassifySettings
from bilmo.tasks.classify.task import CLASSIFY, PreparedClassify, TextItem
from bilmo.tasks.core.label_estimator import LabelEstimator
from bilmo.tasks.data.splitting import RawText


class Classifier(LabelEstimator[RawText, TextItem, ClassifySettings]):
    """Predicts one label per text.

    >>> Classifier(elmo, vectors="glove.txt").fit(texts, labels).predict(texts)        # doctest: +SKIP

    A text is a string, which is split into sentences and tokens, or a list of tokens. Labels are strings, integers or
    booleans, and predictions are an array of the same type.
    """

    task = CLASSIFY
    prepared_: PreparedClassify

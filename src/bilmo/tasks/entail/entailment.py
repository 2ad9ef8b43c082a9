"""The estimator of entailment.

Knows: LabelEstimator. Blind to: files, the command line.
"""

from __future__ import annotations

from bilmo.tasks.core.label_estimator import LabelEstimator
from bilmo.tasks.entail.pairs import Pair
from bilmo.tasks.entail.settings import EntailSettings
from bilmo.tasks.entail.task import ENTAIL, PairItem, PreparedEntail


class Entailment(LabelEstimator[Pair, PairItem, EntailSettings]):
    """Predicts one label per pair of texts, such as whether the first entails the second.

    >>> Entailment(elmo).fit([("A man sleeps.", "A man is awake."), ...], labels).predict(pairs)    # doctest: +SKIP

    Each text of a pair is a string, which is split into sentences and tokens, or a list of tokens. Labels are strings,
    integers or booleans, and predictions are an array of the same type.
    """

    task = ENTAIL
    prepared_: PreparedEntail

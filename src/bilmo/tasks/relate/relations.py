"""The estimator of relations.

Knows: LabelEstimator. Blind to: files, the command line.
"""

from __future__ import annotations

from bilmo.tasks.core.label_estimator import LabelEstimator
from bilmo.tasks.relate.marks import Related
from bilmo.tasks.relate.settings import RelateSettings
from bilmo.tasks.relate.task import RELATE, MarkedItem, PreparedRelate


class Relations(LabelEstimator[Related, MarkedItem, RelateSettings]):
    """Predicts one relation between two marked spans of a text.

    >>> Relations(elmo).fit(["The <e1>fire</e1> caused <e2>damage</e2>.", ...], labels)    # doctest: +SKIP

    A text is a string with the marks <e1>...</e1> and <e2>...</e2>, which is split into sentences and tokens; or a text
    without marks and two spans, `(text, (start, end), (start, end))`, in characters of a string or in tokens of a list.
    Labels are strings, integers or booleans. A label such as `Cause-Effect(e1,e2)` has a direction; `score` counts as
    the official scorer of SemEval-2010 task 8 does.
    """

    task = RELATE
    prepared_: PreparedRelate

"""The probabilities that are written beside an answer: of each label, or of each predicted tag.

Knows: nothing. Blind to: tensors, tasks.
"""

from __future__ import annotations

from typing import NewType

LabelProbabilities = NewType("LabelProbabilities", list[float])
"""For one text the probability of each label, in the order of the labels."""
TagProbabilities = NewType("TagProbabilities", list[float])
"""For one sentence the probability of the predicted tag of each token."""
Probabilities = LabelProbabilities | TagProbabilities

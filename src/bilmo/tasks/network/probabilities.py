"""The probabilities that are written beside an answer: of each label, each predicted tag, or each mention.

Knows: nothing. Blind to: tensors, tasks.
"""

from __future__ import annotations

from typing import NewType

LabelProbabilities = NewType("LabelProbabilities", list[float])
"""For one text the probability of each label, in the order of the labels."""
TagProbabilities = NewType("TagProbabilities", list[float])
"""For one sentence the probability of the predicted tag of each token."""
MentionProbabilities = NewType("MentionProbabilities", list[float])
"""For one document the probability of each mention, cluster by cluster."""
Probabilities = LabelProbabilities | TagProbabilities | MentionProbabilities

"""The probabilities that are written beside an answer: of each label, predicted tag, mention or written word.

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
WordProbabilities = NewType("WordProbabilities", list[float])
"""For one source the probability of each word that was written, and of the end."""
Probabilities = LabelProbabilities | TagProbabilities | MentionProbabilities | WordProbabilities

"""The estimator of tagging.

Knows: Estimator. Blind to: files, the command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from bilmo.tasks.core.estimator import Estimator
from bilmo.tasks.data.spans import Scheme
from bilmo.tasks.tag.head import TagHead
from bilmo.tasks.tag.settings import TagSettings
from bilmo.tasks.tag.task import TAG, PreparedTag, SentenceItem, Tags, Tokens


class Tagger(Estimator[Tokens, SentenceItem, Tags, TagSettings]):
    """Predicts one tag per token.

    >>> Tagger(elmo).fit(sentences, tags).predict(sentences)        # doctest: +SKIP

    Tags that mark spans (IO, IOB1, BIO, BIOES) are predicted as BIOES, which marks the end of a span, and
    returned in the scheme of the training data. All other tags are predicted as they are.
    """

    task = TAG
    prepared_: PreparedTag

    @property
    def labels_(self) -> list[str]:
        """The tags that the network predicts."""
        return list(self.prepared_.labels)

    @property
    def scheme_(self) -> Scheme:
        """How the training tags mark spans; plain where they do not."""
        return self.prepared_.scheme

    def predict(self, sentences: Sequence[Tokens]) -> list[Tags]:
        """For each sentence a list of tags, one per token; sentences differ in length, so it is not an array."""
        return self.answers(sentences)

    def predict_proba(self, sentences: Sequence[Tokens]) -> list[list[list[float]]]:
        """For each token the probability of each tag, in the order of `labels_`."""
        return self.run(sentences, cast("TagHead", self.fitted_network().head).probabilities)

"""The estimator of coreference.

Knows: Estimator. Blind to: files, the command line.
"""

from __future__ import annotations

from collections.abc import Sequence

from bilmo.tasks.core.estimator import Estimator
from bilmo.tasks.coref.settings import CorefSettings
from bilmo.tasks.coref.task import COREF, DocumentItem, PreparedCoref, RawDocument
from bilmo.tasks.data.documents import Clusters


class Coreference(Estimator[RawDocument, DocumentItem, Clusters, CorefSettings]):
    """Finds mentions in documents, and which of them refer to the same person or thing.

    >>> Coreference(elmo).fit(documents, clusters).predict(documents)        # doctest: +SKIP

    A document is a string, which is split into sentences and tokens, or a list of sentences, each a list of tokens. A
    cluster is a list of mentions, (first token, last token), counted over the whole document from 0.
    """

    task = COREF
    prepared_: PreparedCoref

    def predict(self, documents: Sequence[RawDocument]) -> list[Clusters]:
        """For each document its clusters, in the order of their first mentions."""
        return self.answers(documents)

    def tokens(self, documents: Sequence[RawDocument]) -> list[list[list[str]]]:
        """The sentences of each document as lists of tokens. Mentions are given as numbers of these tokens."""
        self.fitted_network()
        return [[list(s) for s in document.sentences] for document in self.prepared_.documents(documents)]

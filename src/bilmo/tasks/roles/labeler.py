"""The estimator of role labelling.

Knows: Estimator. Blind to: files, the command line.
"""

from __future__ import annotations

from collections.abc import Sequence

from bilmo.tasks.core.estimator import Estimator
from bilmo.tasks.data.frames import Frame
from bilmo.tasks.roles.settings import RolesSettings
from bilmo.tasks.roles.task import ROLES, Frames, PreparedRoles, RolesItem, Sentence


class RoleLabeler(Estimator[Sentence, RolesItem, Frames, RolesSettings]):
    """Predicts the predicates of a sentence, and the roles of the words around each.

    >>> RoleLabeler(elmo).fit(sentences, frames).predict(sentences)        # doctest: +SKIP

    A sentence is a list of words, in which predicates are found, or `Marked(words, predicates)`, whose predicates are
    known. A frame is the position of a predicate and one BIO tag per word.
    """

    task = ROLES
    prepared_: PreparedRoles

    @property
    def labels_(self) -> list[str]:
        """The roles, sorted; `V` is the predicate itself."""
        return list(self.prepared_.roles)

    def predict(self, sentences: Sequence[Sentence]) -> list[list[Frame]]:
        """For each sentence one frame per predicate, in the order of the words."""
        return [list(frames) for frames in self.answers(sentences)]

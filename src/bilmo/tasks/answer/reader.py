"""The estimator of answering questions.

Knows: Estimator. Blind to: files, the command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, cast

from bilmo.tasks.answer.settings import AnswerSettings
from bilmo.tasks.answer.task import ANSWER_TASK, AnswerItem, Answers, Asked, Given, PreparedAnswer
from bilmo.tasks.core.estimator import Estimator
from bilmo.tasks.data.squad import Span


class Reader(Estimator[Asked, AnswerItem, Answers, AnswerSettings]):
    """Answers questions with a part of a text.

    >>> Reader(elmo).fit([(context, question)], [answer]).predict([(context, question)])        # doctest: +SKIP

    An example is a pair of strings, the context and the question. An answer is a string that occurs in the context, a
    `Span` of it, a list of all that are correct, or None if the context does not answer the question.
    """

    task = ANSWER_TASK
    prepared_: PreparedAnswer

    @property
    def lang_(self) -> str:
        """How strings are split."""
        return self.prepared_.lang

    def fit(
        self,
        texts: Sequence[Asked],
        answers: Sequence[Given],
        *,
        dev: tuple[Sequence[Asked], Sequence[Given]] | None = None,
    ) -> Self:
        """Train on questions and their answers. Ctrl-C keeps the best epoch so far.

        dev: questions and answers of the dev set; without it, a share of the contexts is split off.
        """
        return super().fit(
            texts, cast("Sequence[Answers]", answers), dev=cast("tuple[Sequence[Asked], Sequence[Answers]] | None", dev)
        )

    def score(self, texts: Sequence[Asked], answers: Sequence[Given]) -> float:
        """F1 on questions."""
        return super().score(texts, cast("Sequence[Answers]", answers))

    def predict(self, questions: Sequence[Asked]) -> list[Span | None]:
        """For each question the answer, with its place in the context; None for no answer."""
        return [spans[0] if spans else None for spans in self.answers(questions)]

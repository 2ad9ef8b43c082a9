"""All tasks: one line each.

Knows: the specification of every task. Blind to: what is in them.
"""

from __future__ import annotations

from bilmo.tasks.answer.task import ANSWER_TASK
from bilmo.tasks.classify.task import CLASSIFY
from bilmo.tasks.core.spec import AnyTask
from bilmo.tasks.coref.task import COREF
from bilmo.tasks.entail.task import ENTAIL
from bilmo.tasks.relate.task import RELATE
from bilmo.tasks.roles.task import ROLES
from bilmo.tasks.tag.task import TAG

TASKS: tuple[AnyTask, ...] = (
    CLASSIFY,
    TAG,
    ENTAIL,
    RELATE,
    ROLES,
    ANSWER_TASK,
    COREF,
)

"""All tasks, including those that write text: the list that the command line uses.

Knows: the specification of every task. Blind to: what is in them.
"""

from __future__ import annotations

from bilmo.generate.summarise import SUMMARISE
from bilmo.generate.translate import TRANSLATE
from bilmo.tasks import all as tasks
from bilmo.tasks.core.spec import AnyTask


def all_tasks() -> tuple[AnyTask, ...]:
    """All tasks, as listed at the time of the call."""
    return (*tasks.TASKS, TRANSLATE, SUMMARISE)

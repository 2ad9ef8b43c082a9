"""`bilmo score`: how well a saved task answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bilmo.cli.fit import Form
from bilmo.cli.predict import Moved, Saved


def score(
    saved: Saved,
    test: Annotated[Path, typer.Argument(help="Examples with their labels or tags, in any form that `fit` reads.")],
    model: Moved = None,
    form: Form = "auto",
) -> None:
    """Measure a saved task: accuracy or span F1 (as conlleval counts it), and a table by label."""
    from bilmo.cli.fit import tell_unseen
    from bilmo.cli.show import learning
    from bilmo.tasks.core import examples
    from bilmo.tasks.core.folder import load

    task = load(saved, elmo=model)
    texts, answers = examples.read(task.name, test, form=form, column=task.used_.column)
    tell_unseen(task, answers)
    learning.score(task.measure(answers, task.predict(texts)))

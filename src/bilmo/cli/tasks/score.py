"""`bilmo score`: how well a saved task predicts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bilmo.cli.options import Json
from bilmo.cli.tasks.predict import MovedModel, Saved
from bilmo.cli.tasks.task_options import Form, LayersDevice, read_data


def score(
    saved: Saved,
    test: Annotated[
        list[Path],
        typer.Argument(
            help="Labelled examples, in any format that `bilmo fit` reads; for translations and summaries also two "
            "parallel files."
        ),
    ],
    model: MovedModel = None,
    gold: Annotated[
        Path | None, typer.Option(help="For word senses: the file with the gold keys of an XML file.")
    ] = None,
    form: Form = "auto",
    device: LayersDevice = "cpu",
    json: Json = False,
) -> None:
    """Measure a saved task with the usual measure of that task, such as accuracy or BLEU; one row per label."""
    from bilmo.cli.tasks import senses
    from bilmo.cli.tasks.fit import show_score
    from bilmo.errors import ConfigError
    from bilmo.generate.folder import load

    if senses.is_saved(saved):
        senses.score(saved, test, gold, model=model, form=form, device=device, json=json)
        return
    if gold is not None:
        raise ConfigError(f"--gold is for word senses; {saved} holds another task")
    estimator = load(saved, elmo=model)
    if estimator.elmo is not None and device != "cpu":
        estimator.elmo.to(device)
    data = read_data(estimator.task, test, form, estimator.settings_)
    show_score(estimator, data.examples, data.answers, json=json)

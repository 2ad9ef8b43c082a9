"""`bilmo fit TASK`: labelled examples to a fitted task."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bilmo.cli.options import Model
from bilmo.cli.tasks import senses
from bilmo.cli.tasks.task_options import (
    Cache,
    Dev,
    Form,
    LayersDevice,
    Test,
    Train,
    WordVectors,
    check_task_output,
    read_data,
    task_group,
    with_settings,
)

if TYPE_CHECKING:
    from bilmo.tasks.core.spec import AnyEstimator, AnyTask

Output = Annotated[
    Path,
    typer.Option("-o", "--output", help="Folder to create. If it contains an interrupted run, that run is resumed."),
]


def fit(task: AnyTask) -> Callable[..., None]:
    """The command that fits one task."""

    def run(
        model: Model,
        *,
        train: Train,
        output: Output,
        dev: Dev = None,
        test: Test = None,
        vectors: WordVectors = None,
        form: Form = "auto",
        cache: Cache = None,
        device: LayersDevice = "cpu",
        **settings: Any,
    ) -> None:
        from bilmo.cli.show import learning
        from bilmo.embed.load import load
        from bilmo.tasks.core import run
        from bilmo.tasks.core.settings import check_settings
        from bilmo.tasks.network.words import load_vectors

        checked = check_settings(settings, task.settings)
        check_task_output(output, model, [train, dev, test], vectors, checked.dictionary)
        elmo = load(model, device=device) if checked.elmo_at != "none" else None
        given = load_vectors(vectors) if vectors else None
        estimator = task.estimator()(elmo, vectors=given, cache=cache, **settings)
        train_data = read_data(task, train, form, checked)
        dev_data, test_data = (read_data(task, path, form, checked) if path else None for path in (dev, test))
        try:
            end = learning.watch(run.fit(estimator, output, train_data, dev_data, model=str(model)))
        except KeyboardInterrupt:
            if (output / "config.json").exists():
                print(
                    f"bilmo: {output} contains the best epoch so far; the same command resumes the run", file=sys.stderr
                )
            raise
        if end is not None:
            print(f"{output}: {end.why}; the best epoch is {end.epoch}, with {end.value:.4f} on dev")
        learning.mixes(estimator.mixes_)
        if test_data is not None:
            print()
            show_score(estimator, test_data.examples, test_data.answers)

    return with_settings(
        run,
        task,
        f"""Train on your examples to {"write" if task.parallel else "predict"} {task.summary}.

        The input of each token is [word vectors ; characters ; mixed ELMo layers]. With a frozen model (the default)
        the layers of the data are computed once and stored. The same command resumes an interrupted run; Ctrl-C
        keeps the best epoch so far.
        """,
    )


def show_score(estimator: AnyEstimator, examples: Sequence[Any], answers: Sequence[Any], *, json: bool = False) -> None:
    """Predict and measure; labels that do not occur in the training data can never be predicted, so they are named."""
    from bilmo.cli.show import learning, messages

    unseen = estimator.prepared_.unseen(answers)
    if unseen:
        named = ", ".join(f"{label} ({count:,})" for label, count in unseen.items())
        messages.note(f"labels that are not in the training data and are never predicted: {named}")
    found = estimator.prepared_.measure(answers, estimator.answers(examples))
    found = replace(found, details=[*found.details, *estimator.prepared_.baselines(examples, answers)])
    learning.score_json(found) if json else learning.score(found)


app = task_group(
    fit,
    "Fit a task on labelled examples, on top of a model. `bilmo fit TASK --help` lists its options.",
    more={"senses": senses.fit},
)

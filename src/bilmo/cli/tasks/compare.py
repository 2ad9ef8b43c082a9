"""`bilmo compare TASK`: what ELMo adds to a task on your own data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bilmo.cli.options import Model
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
    from bilmo.tasks.core.compare import Outcome, VariantStarted
    from bilmo.tasks.core.events import Event
    from bilmo.tasks.core.spec import AnyTask

Variants = Annotated[
    str,
    typer.Option(
        help="`words`: word vectors only. `static`: the model's own word vectors only, without context. `elmo`: the "
        "learned mix only. `both`: words and elmo. `top`, `mean`: both, with that mix. `output`, `input+output`: both, "
        "with the learned mix at the output of the task's own network, or at both ends. A number: that layer only. "
        "--chars adds a character CNN to every variant except `elmo` and single layers."
    ),
]
Seeds = Annotated[int, typer.Option(min=1, help="Number of seeds; each variant is trained once per seed.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Also write the table, as Markdown.")]
VARIED = ("elmo_at", "mix", "tune", "tune_rate", "seed")
"""Settings that a comparison chooses itself."""


def compare(task: AnyTask) -> Callable[..., None]:
    """The command that compares the inputs of one task."""

    def run(
        model: Model,
        *,
        train: Train,
        dev: Dev = None,
        test: Test = None,
        vectors: WordVectors = None,
        variants: Variants = "words,elmo,both,top,mean",
        seeds: Seeds = 3,
        output: Output = None,
        form: Form = "auto",
        cache: Cache = None,
        device: LayersDevice = "cpu",
        **settings: Any,
    ) -> None:
        from bilmo.cli.show import learning
        from bilmo.cli.show import tables as show
        from bilmo.embed.load import load
        from bilmo.store.atomic import new_file
        from bilmo.tasks.core import compare as comparing
        from bilmo.tasks.core.settings import check_settings

        checked = check_settings(settings, task.settings)
        if output:
            check_task_output(output, model, [train, dev, test], vectors, checked.dictionary)
        elmo = load(model, device=device)
        train_data = read_data(task, train, form, checked)
        dev_data, test_data = (read_data(task, path, form, checked) if path else None for path in (dev, test))
        outcomes: list[Outcome] = []
        events = comparing.compare(
            task,
            elmo,
            train=train_data,
            dev=dev_data,
            test=test_data,
            vectors=vectors,
            cache=cache,
            variants=[name.strip() for name in variants.split(",")],
            seeds=range(1, seeds + 1),
            **settings,
        )
        learning.watch(_training(events, outcomes), quiet=True)
        show.table(*comparing.rows(outcomes))
        if output:
            with new_file(output) as partial:
                partial.write_text(comparing.markdown(outcomes), encoding="utf-8")

    return with_settings(
        run,
        task,
        f"""Compare inputs of a task that {"writes" if task.parallel else "predicts"} {task.summary}.

        The same head is trained with word vectors only, ELMo only, both, and with other mixes. The table shows means
        and standard deviations over seeds, measured on --test if it is given, otherwise on the dev set. Without
        --vectors, word vectors are trained from scratch.
        """,
        without=VARIED,
    )


def _training(events: Iterator[Event | VariantStarted | Outcome], outcomes: list[Outcome]) -> Iterator[Event]:
    """The events of training; outcomes are collected, and printed at once."""
    from bilmo.cli.show import messages
    from bilmo.tasks.core.compare import Outcome, VariantStarted

    for event in events:
        if isinstance(event, Outcome):
            outcomes.append(event)
            messages.status(f"{event.name}: {event.mean:.4f} ({event.spread:.4f})")
        elif isinstance(event, VariantStarted):
            messages.status(f"{event.name}, seed {event.seed}")
        else:
            yield event


app = task_group(compare, "Compare what ELMo and word vectors contribute to a task, on your own data.")

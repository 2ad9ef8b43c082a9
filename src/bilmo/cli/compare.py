"""`bilmo compare`: what ELMo adds to a task on one's own data."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bilmo.cli.fit import (
    BatchSize,
    Cache,
    Chars,
    Column,
    Dev,
    Dropout,
    Epochs,
    Form,
    Head,
    Hidden,
    Lang,
    Model,
    Name,
    Patience,
    Rate,
    Test,
    Train,
    VectorsFile,
    read,
)

if TYPE_CHECKING:
    from bilmo.tasks.core.compare import Begun, Outcome
    from bilmo.tasks.core.events import Event


def compare(
    task: Name,
    model: Model,
    train: Train,
    dev: Dev = None,
    test: Test = None,
    vectors: VectorsFile = None,
    variants: Annotated[
        str,
        typer.Option(
            help="`words`: word vectors only. `elmo`: the learned mix alone. `both`: joined. `top`, `mean`: joined, "
            "with that mix instead. A number: that layer alone."
        ),
    ] = "words,elmo,both,top,mean",
    seeds: Annotated[int, typer.Option(min=1, help="Each variant is learned so many times.")] = 3,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Also write the table as Markdown.")] = None,
    head: Head = "default",
    hidden: Hidden = 200,
    chars: Chars = 0,
    dropout: Dropout = 0.5,
    rate: Rate = 0.001,
    batch: BatchSize = 32,
    epochs: Epochs = 50,
    patience: Patience = 5,
    lang: Lang = "auto",
    form: Form = "auto",
    column: Column = "",
    cache: Cache = None,
) -> None:
    """Learn the same task with word vectors only, ELMo only, both, and other mixes; means and spread over seeds.

    Measured on --test, or without it on the examples each epoch was judged by. Without --vectors, word vectors are
    learned from scratch.
    """
    from bilmo.cli.show import learning
    from bilmo.cli.show import tables as show
    from bilmo.embed.load import load
    from bilmo.store.atomic import new_file
    from bilmo.tasks.core import compare as comparing
    from bilmo.tasks.core.folder import TASKS

    elmo = load(model)
    examples = [read(task, path, form, column) if path else None for path in (train, dev, test)]
    assert examples[0] is not None
    outcomes: list[Outcome] = []
    events = comparing.compare(
        TASKS[task.value],
        elmo,
        train=examples[0],
        dev=examples[1],
        test=examples[2],
        vectors=vectors,
        cache=cache,
        variants=[name.strip() for name in variants.split(",")],
        seeds=range(1, seeds + 1),
        head=head,
        hidden=hidden,
        chars=chars,
        dropout=dropout,
        rate=rate,
        batch=batch,
        epochs=epochs,
        patience=patience,
        lang=lang,
        column=column,
    )
    learning.watch(_learning(events, outcomes), quiet=True)
    show.table(*comparing.rows(outcomes))
    if output:
        with new_file(output) as partial:
            partial.write_text(comparing.markdown(outcomes), encoding="utf-8")


def _learning(events: Iterator[Event | Begun | Outcome], outcomes: list[Outcome]) -> Iterator[Event]:
    """The events of learning; outcomes are put aside, and told as they come."""
    from bilmo.tasks.core.compare import Begun, Outcome

    for event in events:
        if isinstance(event, Outcome):
            outcomes.append(event)
            print(f"{event.name}: {event.mean:.4f} ({event.spread:.4f})", file=sys.stderr)
        elif isinstance(event, Begun):
            print(f"{event.name}, seed {event.seed}", file=sys.stderr)
        else:
            yield event

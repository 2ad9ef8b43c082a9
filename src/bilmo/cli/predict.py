"""`bilmo predict`: answers of a saved task."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from bilmo.cli.fit import Form

if TYPE_CHECKING:
    from bilmo.tasks.core.estimator import Task
    from bilmo.tasks.core.examples import Shape

AT_ONCE = 256
"""Texts answered at a time."""

Saved = Annotated[Path, typer.Argument(help="A folder that `bilmo fit` made.")]
Moved = Annotated[Path | None, typer.Option(help="Where the biLM is now, if not where it was.")]


def predict(
    saved: Saved,
    input: Annotated[
        Path,
        typer.Argument(help="Texts or sentences, a line each, or any form that `fit` reads; - for standard input."),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The file to write; else standard output.")
    ] = None,
    to: Annotated[
        str,
        typer.Option(help="jsonl, conll, csv or table (with tabs); else by the file's name, or what the task likes."),
    ] = "auto",
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Also how likely the answers are.")] = False,
    model: Moved = None,
    form: Form = "auto",
) -> None:
    """Label texts, or tag sentences, with a saved task; labels that stand in the input are not looked at.

    How the input looks is found out by its name and first lines, and told: of lines that begin with a label that was
    learned and a tab, the text is what follows; `label text` is looked for only where `fit` read that; CSV and TSV may
    have one column of texts, or name theirs in a first row. Sentences for a tagger are split as `fit --lang` said.
    """
    from bilmo.cli.show import tables as show
    from bilmo.store.atomic import new_file
    from bilmo.tasks.core import examples
    from bilmo.tasks.core.folder import load
    from bilmo.text.files import STDIN

    task = load(saved, elmo=model)
    shape = examples.shape_of(task.name, output, to)
    how, questions = examples.questions(task, input, form=form)
    show.notes([f"{'standard input' if input == STDIN else input} was read as {how} (--form overrules it)"])
    count = 0
    with ExitStack() as stack:
        file: TextIO = sys.stdout
        if output:
            partial = stack.enter_context(new_file(output))
            file = stack.enter_context(partial.open("w", encoding="utf-8", newline="\n"))
        first = examples.heading(task, shape, probabilities=probabilities)
        if first is not None:
            print(first, file=file)
        counted = stack.enter_context(show.progress("texts"))
        for some, lines in _groups(task, counted(questions), shape, probabilities):
            file.writelines(f"{line}\n" for line in lines)
            count += some
    if output:
        print(f"{output}: {count:,} answered")


def _groups(
    task: Task, questions: Iterator[Any], shape: Shape, probabilities: bool
) -> Iterator[tuple[int, Iterator[str]]]:
    from bilmo.tasks.core.examples import answered

    number = 1
    while some := list(islice(questions, AT_ONCE)):
        yield len(some), answered(task, some, shape, probabilities=probabilities, number=number)
        number += len(some)

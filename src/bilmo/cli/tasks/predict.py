"""`bilmo predict`: the answers of a saved task."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, TextIO

import typer

from bilmo.cli.tasks.task_options import Form, LayersDevice

BATCH_EXAMPLES = 256
"""The number of examples predicted at a time."""

Saved = Annotated[Path, typer.Argument(help="A folder made by `bilmo fit`.")]
MovedModel = Annotated[
    Path | None, typer.Option("--model", help="Path of the biLM.", show_default="its path when the task was fitted")
]


def predict(
    saved: Saved,
    input: Annotated[
        str,
        typer.Argument(
            help="A file with texts or sentences, one per line, or in any format that `bilmo fit` reads; - for "
            "standard input. Or the text itself, in quotes."
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write.", show_default="standard output")
    ] = None,
    to: Annotated[
        str,
        typer.Option(
            help="Format of the output: `table` (with tabs), `csv`, `jsonl`, or `conll` for tags. `auto`: from the "
            "extension of the output file, otherwise the default of the task."
        ),
    ] = "auto",
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Also write probabilities.")] = False,
    model: MovedModel = None,
    form: Form = "auto",
    device: LayersDevice = "cpu",
) -> None:
    """Predict with a saved task. Labels in the input are ignored.

    The format of the input is detected from its name and its first lines, and reported. Lines that start with a trained
    label and a tab are read as `label<TAB>text`. `label text` is recognized only if the training examples had this
    format. CSV and TSV may have a single column of texts, or a first row with column names. Raw text for a tagger is
    split into sentences and tokens according to `--lang` of `bilmo fit`. Pairs for entailment may be lines with two
    texts and a tab between them.
    """
    from bilmo import progress
    from bilmo.cli.show import messages
    from bilmo.embed.inputs import is_text
    from bilmo.formats import open as layouts
    from bilmo.store.atomic import new_file
    from bilmo.store.output import check_output
    from bilmo.tasks.folder import files_of, load
    from bilmo.text.files import STDIN

    estimator = load(saved, elmo=model)
    if output:
        texts = [] if is_text(input) else [Path(input)]
        bilm = layouts.files_of(model) if model else []
        check_output([output], texts=texts, files=[*files_of(saved), *bilm])
    if estimator.elmo is not None and device != "cpu":
        estimator.elmo.to(device)
    prepared = estimator.prepared_
    written = estimator.task.choose_output(output, to)
    count = 0
    with ExitStack() as stack:
        path = stack.enter_context(_written(input)) if is_text(input) else Path(input)
        inputs = prepared.read(path, form, estimator.settings_)
        shown = "the text" if is_text(input) else "standard input" if path == STDIN else input
        messages.note(f"{shown} is read as {inputs.form} (--form changes this)")
        file: TextIO = sys.stdout
        if output:
            partial = stack.enter_context(new_file(output))
            file = stack.enter_context(partial.open("w", encoding="utf-8", errors="backslashreplace", newline="\n"))
        header = prepared.header(written, probabilities=probabilities)
        if header is not None:
            print(header, file=file)
        counted = stack.enter_context(progress.counting("texts"))
        examples = counted(inputs.examples)
        while some := list(islice(examples, BATCH_EXAMPLES)):
            answers = estimator.answers(some)
            shares = estimator.confidence(some) if probabilities else None
            file.writelines(f"{line}\n" for line in prepared.lines(some, answers, shares, written, count + 1))
            count += len(some)
    if output:
        print(f"{output}: {count:,} predictions")


@contextmanager
def _written(text: str) -> Iterator[Path]:
    """Text on the command line as a file, which is read like any other."""
    import tempfile

    from bilmo.embed.inputs import Inputs

    with tempfile.TemporaryDirectory(prefix="bilmo-") as folder:
        path = Path(folder, "text")
        path.write_text("".join(f"{line}\n" for line in Inputs((text,)).items()), encoding="utf-8")
        yield path

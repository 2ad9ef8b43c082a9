"""`bilmo predict`: the answers of a saved task."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, TextIO

import typer

from bilmo.cli.tasks.search_options import Search
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
        str | None,
        typer.Argument(
            help="A file with texts or sentences, one per line, or in any format that `bilmo fit` reads; - for "
            "standard input. Or the text itself, in quotes.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write.", show_default="standard output")
    ] = None,
    to: Annotated[
        str,
        typer.Option(
            help="Format of the output: `table` (with tabs), `csv`, `jsonl`, `html` (a page for a browser), `conll` "
            "for tags, `text` for translations and summaries, `keys` for word senses of an XML file. `auto`: from the "
            "extension of the output file, otherwise the default of the task."
        ),
    ] = "auto",
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Also write probabilities.")] = False,
    context: Annotated[
        Path | None, typer.Option(help="File with the text that --question asks about; - for standard input.")
    ] = None,
    question: Annotated[
        str | None, typer.Option(help="A question about the text in --context, for a task that answers questions.")
    ] = None,
    beam: Annotated[
        int | None,
        typer.Option(
            help="For translations and summaries: number of partial results that the search keeps; 1 is greedy.",
            show_default="as set by bilmo fit",
        ),
    ] = None,
    best: Annotated[
        int | None,
        typer.Option(help="For translations and summaries: number of results for each text.", show_default="1"),
    ] = None,
    length_penalty: Annotated[
        float | None,
        typer.Option(
            help="For translations and summaries: 0 prefers short results, higher values longer ones.",
            show_default="as set by bilmo fit",
        ),
    ] = None,
    longest: Annotated[
        int | None,
        typer.Option(
            help="For translations and summaries: maximum number of tokens of a result.",
            show_default="as set by bilmo fit",
        ),
    ] = None,
    attention: Annotated[
        Path | None,
        typer.Option(
            help="For translations and summaries: also write a page that shows which source words each word was "
            "written from."
        ),
    ] = None,
    model: MovedModel = None,
    form: Form = "auto",
    device: LayersDevice = "cpu",
) -> None:
    """Predict with a saved task. Labels in the input are ignored.

    The format of the input is detected from its name and its first lines, and reported. Lines that start with a trained
    label and a tab are read as `label<TAB>text`. Lines of the form `label text` are recognized only if the training
    examples had this format. CSV and TSV may have a single column of texts, or a first row with column names. Raw text
    for a tagger is split into sentences and tokens according to `--lang` of `bilmo fit`. Pairs for entailment may be
    lines with two texts and a tab between them. A single question can be asked with `--context` and `--question`. Word
    senses are predicted from raw text, or for the words that are marked in an XML file.
    """
    from bilmo import progress
    from bilmo.cli.show import messages
    from bilmo.cli.tasks import senses
    from bilmo.errors import ConfigError
    from bilmo.formats import open as layouts
    from bilmo.generate.attention_page import STYLE
    from bilmo.generate.folder import load
    from bilmo.generate.generator import Generator
    from bilmo.store.atomic import new_file
    from bilmo.store.output import check_output
    from bilmo.tasks.core import html
    from bilmo.tasks.core.task_folder import files_of

    given = _Input(input, context, question)
    search = Search(beam, best, length_penalty, longest, attention)
    if senses.is_saved(saved):
        given.check(senses.NAME, asks=False)
        search.check(senses.NAME, writes=False)
        if probabilities:
            raise ConfigError("--probabilities: senses are chosen by cosine, which is not a probability")
        with given.as_file() as (path, shown):
            senses.predict(saved, path, shown, given.paths, output, to, model=model, form=form, device=device)
        return
    estimator = load(saved, elmo=model)
    given.check(estimator.task.name, asks=estimator.task.asks)
    search.check(estimator.task.name, writes=estimator.task.parallel)
    outputs = [path for path in (output, attention) if path]
    if outputs:
        bilm = layouts.files_of(model) if model else []
        check_output(outputs, texts=given.paths, files=[*files_of(saved), *bilm])
    if estimator.elmo is not None and device != "cpu":
        estimator.elmo.to(device)
    prepared = estimator.prepared_
    written = search.choose_output(estimator.task, output, to)
    count = 0
    with ExitStack() as stack:
        path, shown = stack.enter_context(given.as_file())
        inputs = prepared.read(path, form, estimator.settings_)
        messages.note(f"{shown} is read as {inputs.form} (--form changes this)")
        file: TextIO = sys.stdout
        if output:
            partial = stack.enter_context(new_file(output))
            file = stack.enter_context(partial.open("w", encoding="utf-8", errors="backslashreplace", newline="\n"))
        if written == "html":
            header: str | None = html.header(f"{estimator.task.name} · {estimator.task.summary}", STYLE)
        else:
            header = prepared.header(written, probabilities=probabilities)
        if header is not None:
            print(header, file=file)
        if isinstance(estimator, Generator):
            write_results = stack.enter_context(search.writing(estimator, written))
        counted = stack.enter_context(progress.counting("texts"))
        examples = counted(inputs.examples)
        while some := list(islice(examples, BATCH_EXAMPLES)):
            if isinstance(estimator, Generator):
                lines = write_results(some, count + 1)
            else:
                answers = estimator.answers(some)
                shares = estimator.confidence(some) if probabilities else None
                lines = prepared.lines(some, answers, shares, written, count + 1)
            file.writelines(f"{line}\n" for line in lines)
            count += len(some)
        if written == "html":
            print(html.FOOTER, file=file)
    for path in outputs:
        print(f"{path}: {count:,} predictions")


@dataclass(frozen=True)
class _Input:
    """The input of a prediction: a file, a text on the command line, or a context and a question."""

    input: str | None
    context: Path | None
    question: str | None

    def check(self, task: str, *, asks: bool) -> None:
        """Refuse options that do not fit together or do not fit the task."""
        from bilmo.errors import ConfigError

        if self.context is None and self.question is None:
            if self.input is None:
                asked = ", or --context FILE and --question TEXT" if asks else ""
                raise ConfigError(f"there is nothing to predict from; give a file or a text{asked}")
        elif not asks:
            raise ConfigError(f"--context and --question are for tasks that answer questions; this task is {task}")
        elif self.context is None or self.question is None or self.input is not None:
            raise ConfigError("--context and --question belong together, and replace the input file")

    @property
    def paths(self) -> list[Path]:
        """The files that are read."""
        from bilmo.embed.inputs import is_text

        files = [] if self.input is None or is_text(self.input) else [Path(self.input)]
        return [*files, *([self.context] if self.context is not None else [])]

    @contextmanager
    def as_file(self) -> Iterator[tuple[Path, str]]:
        """A file, and what to call it. Text and questions on the command line are written to a temporary one."""
        import json
        import tempfile

        from bilmo.embed.inputs import decoded_argument, is_text
        from bilmo.text.files import STDIN, text_lines

        if self.input is not None and not is_text(self.input):
            yield Path(self.input), "standard input" if Path(self.input) == STDIN else self.input
            return
        if self.context is not None:
            entry = {"context": "\n".join(text_lines(self.context)), "question": decoded_argument(self.question or "")}
            text, shown = json.dumps(entry), "the question"
        else:
            text, shown = decoded_argument(self.input or "").removesuffix("\n"), "the text"
        with tempfile.TemporaryDirectory(prefix="bilmo-") as folder:
            path = Path(folder, "text")
            path.write_text(f"{text}\n", encoding="utf-8")
            yield path, shown

"""Word senses: what `bilmo fit senses`, `bilmo predict` and `bilmo score` do for them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from bilmo.cli.completion import complete_one_of
from bilmo.cli.options import Model, mix_of
from bilmo.cli.tasks.task_options import LayersDevice
from bilmo.errors import ConfigError, TextError

if TYPE_CHECKING:
    from bilmo.sense.labelled.disambiguator import Disambiguator, WordSense

NAME = "senses"
COLUMNS = ("text", "word", "lemma", "pos", "sense", "fallback", "topic", "synonyms")
BATCH_TEXTS = 256
"""The number of texts predicted at a time."""


def fit(
    model: Model,
    *,
    train: Annotated[
        Path,
        typer.Option(
            help="Labelled sentences: SemCor as JSON lines with `words` and `senses`, or XML with --gold (plain, .gz, "
            ".xz, .zst)."
        ),
    ],
    inventory: Annotated[Path, typer.Option(help="The senses of all words: WordNet's file index.sense.")],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", help="Folder to create. If it contains an interrupted run, that run is resumed."
        ),
    ],
    gold: Annotated[Path | None, typer.Option(help="The file of gold keys, where --train is XML.")] = None,
    mix: Annotated[
        str,
        typer.Option(
            help="Layers that are compared: `top`, `mean`, `concat`, or layer numbers such as `1` or `0,1`.",
            autocompletion=complete_one_of("top", "mean", "concat"),
        ),
    ] = "top",
    prior: Annotated[
        float,
        typer.Option(
            min=0,
            help="Added to the cosine of a sense: this times the logarithm of its number of uses in the training text. "
            "0: the nearest sense, however rare it is.",
        ),
    ] = 0.1,
    raw: Annotated[
        bool, typer.Option("--raw", help="Compare vectors as they are, without centring and whitening.")
    ] = False,
    device: LayersDevice = "cpu",
) -> None:
    """Learn word senses from labelled text: the vector of a sense is the mean vector of its uses.

    A word gets the nearest sense of its lemma. A word that the training text does not have gets its first sense in the
    inventory, and the output says so. The same command resumes an interrupted run.
    """
    from bilmo import progress
    from bilmo.embed.load import load
    from bilmo.formats.open import files_of
    from bilmo.sense.labelled import folder
    from bilmo.sense.labelled.disambiguator import Disambiguator
    from bilmo.store.output import check_output

    how = mix_of(mix)
    if how == "all":
        raise ConfigError("--mix is 'all'; senses need one vector per word: top, mean, concat, or layer numbers")
    texts = [path for path in (train, inventory, gold) if path is not None]
    check_output([output], files=[*texts, *files_of(model)])
    found = Disambiguator(load(model, device=device), mix=how, whiten=not raw, prior=prior)
    with ExitStack() as stack:
        update = None
        for done, total in folder.fit(found, output, train, inventory, gold, model=str(model)):
            update = update or stack.enter_context(progress.share_done("learning senses", total))
            update(done)
    learned = found.learned
    print(f"{output}: {len(learned.keys):,} senses with {int(learned.counts.sum()):,} uses")


def is_saved(saved: Path) -> bool:
    """Whether a folder holds word senses; anything else is left to the other tasks."""
    import json

    try:
        data = json.loads((saved / "config.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and data.get("bilmo_task") == NAME


def predict(
    saved: Path,
    path: Path,
    shown: str,
    given: Sequence[Path],
    output: Path | None,
    to: str,
    *,
    model: Path | None,
    form: str,
    device: str,
) -> None:
    """Predict the senses of raw text, or of the words that an XML file marks.

    path, shown: the file to read, and what to call it.
    given: the files that the user named.
    """
    from bilmo import progress
    from bilmo.cli.show import messages
    from bilmo.sense.labelled import folder
    from bilmo.store.atomic import new_file
    from bilmo.store.output import check_output
    from bilmo.tasks.core import html
    from bilmo.tasks.data.rows import row
    from bilmo.text.files import text_lines

    marked = _is_marked(path, form)
    written = _choose_output(output, to, marked=marked)
    if output:
        check_output([output], texts=given, files=folder.files_of(saved))
    found = _load(saved, model, device)
    messages.note(f"{shown} is read as {'XML' if marked else 'raw text'} (--form changes this)")
    count = fallbacks = 0
    with ExitStack() as stack:
        file: TextIO = sys.stdout
        if output:
            partial = stack.enter_context(new_file(output))
            file = stack.enter_context(partial.open("w", encoding="utf-8", errors="backslashreplace", newline="\n"))
        if written == "keys":
            for name, key, fallback in _keys(found, path):
                print(f"{name} {key}", file=file)
                count, fallbacks = count + 1, fallbacks + fallback
        else:
            header = html.header("word senses") if written == "html" else None
            header = row(COLUMNS, written) if written in ("table", "csv") else header
            if header is not None:
                print(header, file=file)
            counted = stack.enter_context(progress.counting("texts"))
            texts = counted(text_lines(path))
            number = 0
            while some := list(islice(texts, BATCH_TEXTS)):
                for text, senses in zip(some, found.predict(some), strict=True):
                    number += 1
                    file.writelines(f"{line}\n" for line in _lines(found, text, senses, written, number))
                    count, fallbacks = count + len(senses), fallbacks + sum(one.fallback for one in senses)
            if written == "html":
                print(html.FOOTER, file=file)
    messages.note(f"{fallbacks:,} of {count:,} words are not in the training text and got their first sense")
    if output:
        print(f"{output}: {count:,} predictions")


def score(
    saved: Path, tests: Sequence[Path], gold: Path | None, *, model: Path | None, form: str, device: str, json: bool
) -> None:
    """F1 on marked words, as the official scorer counts it."""
    from bilmo.cli.show import learning

    if len(tests) != 1:
        raise TextError(f"word senses are scored on one file, with its keys in --gold; found {len(tests)} files")
    found = _load(saved, model, device).score(tests[0], gold, form=form)
    learning.score_json(found) if json else learning.score(found)


def _load(saved: Path, model: Path | None, device: str) -> Disambiguator:
    from bilmo.sense.labelled import folder

    found = folder.load(saved, elmo=model)
    if device != "cpu":
        found.elmo.to(device)
    return found


def _is_marked(path: Path, form: str) -> bool:
    """Whether a file is XML in which words are marked; otherwise it is raw text."""
    from bilmo.tasks.data.source import check_form, suffix

    return (check_form(form, ("text", "xml")) or ("xml" if suffix(path) == ".xml" else "text")) == "xml"


def _choose_output(output: Path | None, to: str, *, marked: bool) -> str:
    """The form to write: the one asked for, the one of the file's name, or the default."""
    from bilmo.tasks.data.rows import SUFFIXES

    accepted = ("keys",) if marked else ("table", "csv", "jsonl", "html")
    by_name = SUFFIXES.get(output.suffix.lower()) if output is not None else None
    form = (by_name or accepted[0]) if to == "auto" else to
    if form not in accepted:
        what = "an XML file" if marked else "raw text"
        raise ConfigError(f"word senses of {what} can be written as {', '.join(accepted)}; found {form}")
    return form


def _keys(found: Disambiguator, path: Path) -> Iterator[tuple[str, str, bool]]:
    """The name of each marked word, its sense, and whether that is only the first one."""
    from bilmo.sense.labelled import corpus

    sentences = corpus.read(path, form="xml")
    uses = (use for one in sentences for use in one.uses)
    for use, (key, fallback) in zip(uses, found.choose(sentences), strict=True):
        if key is not None:
            yield use.id, key, fallback


def _lines(found: Disambiguator, text: str, senses: Sequence[WordSense], form: str, number: int) -> Iterator[str]:
    """The senses of one text as lines of a file."""
    from dataclasses import asdict
    from json import dumps

    from bilmo.tasks.core.html import Mark, article, marked
    from bilmo.tasks.data.rows import row

    if form == "jsonl":
        tokens = [token for sentence in found.elmo.sentences(text) for token in sentence]
        yield dumps({"text": text, "tokens": tokens, "senses": [asdict(one) for one in senses]}, ensure_ascii=False)
    elif form == "html":
        places = found.elmo.offsets(text)
        marks = [
            Mark(
                places[one.begin][0],
                places[one.end - 1][1],
                "nvar".index(one.pos),
                one.topic.partition(".")[2] + ("?" if one.fallback else ""),
                title="; ".join([one.sense, *one.synonyms]),
            )
            for one in senses
        ]
        yield article([marked(text, marks)])
    else:
        for one in senses:
            fallback = "yes" if one.fallback else ""
            cells = (number, one.text, one.lemma, one.pos, one.sense, fallback, one.topic, ", ".join(one.synonyms))
            yield row(cells, form)

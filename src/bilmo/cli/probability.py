"""`bilmo probability`: how likely each word or sentence of a text is."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from bilmo.cli.options import Dictionary, EmbedDevice, Lang, Model, SentenceStart, Start

if TYPE_CHECKING:
    from bilmo.embed.probability import ScoredSentence

FORMS = (".tsv", ".jsonl")
BITS = -1 / math.log(2)
"""Factor from a natural logarithm of a probability to the surprisal in bits."""


class By(StrEnum):
    """The unit of one row."""

    word = "word"
    sentence = "sentence"


def probability(
    model: Model,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT...", help="Text files or folders, - for standard input, or the text itself, in quotes."
        ),
    ],
    by: Annotated[By, typer.Option(help="One row per word, or one row per sentence.")] = By.word,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write: .tsv or .jsonl.", show_default="standard output, as TSV"),
    ] = None,
    field: Annotated[
        str | None,
        typer.Option(help="Score this field of JSON lines (a text or a list of tokens), or this column of CSV or TSV."),
    ] = None,
    start: SentenceStart = Start.settled,
    lang: Lang = "auto",
    dictionary: Dictionary = None,
    device: EmbedDevice = "cpu",
) -> None:
    """Write how likely each word or each sentence of a text is, in both directions, with the full softmax.

    `forward` and `backward` are natural logarithms of probabilities; `forward_bits` and `backward_bits` are the
    surprisal, which is minus the logarithm to base 2. The numbers of a sentence are sums over its words and one
    boundary. Words outside the vocabulary are scored as `<UNK>` and counted in the column `unknown`.
    """
    from bilmo import progress
    from bilmo.embed.inputs import Inputs, is_text
    from bilmo.embed.load import load
    from bilmo.embed.probability import scored
    from bilmo.errors import ConfigError, TextError
    from bilmo.formats import open as layouts
    from bilmo.store.atomic import new_file
    from bilmo.store.output import check_output

    if output and output.suffix not in FORMS:
        raise ConfigError(f"{output}: the extension selects the format; accepted: {', '.join(FORMS)}")
    texts = Inputs(tuple(inputs), field=field)
    if output:
        check_output([output], texts=[Path(one) for one in inputs if not is_text(one)], files=layouts.files_of(model))
    with progress.working("loading the model"):
        elmo = load(model, start=start.value, lang=lang, dictionary=dictionary, device=device)
    count = 0
    with ExitStack() as stack:
        file: TextIO = sys.stdout
        if output:
            partial = stack.enter_context(new_file(output))
            file = stack.enter_context(partial.open("w", encoding="utf-8", errors="backslashreplace", newline="\n"))
        counted = stack.enter_context(progress.counting("texts"))
        tables = output is None or output.suffix == ".tsv"
        for sentence in scored(elmo, counted(texts.items())):
            for row in _word_rows(sentence) if by == By.word else _sentence_rows(sentence):
                if tables and not count:
                    print("\t".join(row), file=file)
                print("\t".join(map(_cell, row.values())) if tables else json.dumps(row, ensure_ascii=False), file=file)
                count += 1
        if not count:
            raise TextError("there is no sentence in the text; every line is blank")
    if output:
        print(f"{output}: {count:,} {by.value}s")


def _word_rows(found: ScoredSentence) -> Iterator[dict[str, Any]]:
    for k, token in enumerate(found.tokens):
        logs = {name: float(row[k]) for name, row in found.words.items()}
        yield {
            "line": found.line,
            "sentence": found.sentence,
            "word": token,
            **_both(logs),
            "unknown": found.unknown[k],
        }


def _sentence_rows(found: ScoredSentence) -> Iterator[dict[str, Any]]:
    counts = {"words": len(found.tokens), "unknown": sum(found.unknown)}
    yield {
        "line": found.line,
        "sentence": found.sentence,
        **_both(found.totals),
        **counts,
        "text": " ".join(found.tokens),
    }


def _both(logs: dict[str, float]) -> dict[str, float]:
    return logs | {f"{name}_bits": BITS * value for name, value in logs.items()}


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)

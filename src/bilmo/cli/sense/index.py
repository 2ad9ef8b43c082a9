"""`bilmo index`: every use of every word of a text, for searches by similarity."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bilmo.cli.options import Dictionary, EmbedDevice, Lang, Model, Multiply, Precision, Texts, Workers


class Stored(StrEnum):
    """The number format of stored vectors."""

    float16 = "float16"
    int8 = "int8"


def index(
    model: Model,
    texts: Texts,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the index.")],
    add: Annotated[bool, typer.Option("--add", help="Add the texts to an existing index.")] = False,
    dtype: Annotated[
        Stored | None,
        typer.Option(
            help="Number format of the vectors. `int8` takes half the space of `float16`.",
            show_default="float16; with --add, that of the index",
        ),
    ] = None,
    lang: Lang = "auto",
    dictionary: Dictionary = None,
    precision: Multiply = Precision.float32,
    device: EmbedDevice = "cpu",
    workers: Workers = 1,
) -> None:
    """Index every use of every word of a text, for fast searches.

    `bilmo similar MODEL "... [word] ..." --in INDEX` searches it.

    The index keeps the sentences too, so the texts are not needed to search it. The same command resumes an
    interrupted run. Above 100,000 uses, search is fast only if faiss is installed when the index is built:
    `pip install 'bilmo[search]'`, or in a clone `pip install '.[search]'`.
    """
    from bilmo.cli.show import indexing as show
    from bilmo.embed.options import LoadOptions
    from bilmo.errors import ConfigError
    from bilmo.sense.index import index_events

    if add and dtype:
        raise ConfigError("with --add, the number format is that of the index; leave out --dtype")
    loading = LoadOptions(lang=lang, dictionary=dictionary, precision=precision.value, device=device)
    stored = dtype or Stored.float16
    events = index_events(
        model, texts, output, dtype=stored.value, add=add, workers=workers, progress=True, loading=loading
    )
    show.indexing(events, output)

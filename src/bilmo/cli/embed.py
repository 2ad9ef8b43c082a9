"""`bilmo embed`: a file of sentences to a file of vectors."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bilmo.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bilmo.embed.embedder import All, Embedder
    from bilmo.net.mix import How

AT_ONCE = 512
"""Sentences held at a time."""


class Start(StrEnum):
    """What every sentence starts from."""

    settled = "settled"
    zero = "zero"
    carry = "carry"


def embed(
    model: Path = typer.Argument(help="A model of any layout."),
    sentences: Path = typer.Argument(
        help="One sentence a line, its words between spaces; plain, .gz, .xz or .zst; - for standard input."
    ),
    output: Path = typer.Option(..., "-o", "--output", help="The HDF5 file to write (.h5 or .hdf5)."),
    mix: str = typer.Option(
        "all",
        help="`all` layers, their `mean`, the `top` one, layers 1 and up side by side (`concat`), "
        "or the mean of some by number, as in `0,1`.",
    ),
    start: Start = typer.Option(
        Start.settled,
        help="`settled`: every sentence starts from the same state, so it always has the same vectors. "
        "`zero`: from nothing. `carry`: where the sentence before ended.",
    ),
) -> None:
    """Embed a file of sentences into HDF5, laid out as `allennlp elmo` wrote it.

    Dataset `0` is the first line, `1` the second, and so on: (layers, tokens, width), or (tokens, width) when
    mixed. A blank line has no tokens. `sentence_to_index` holds a JSON text that says which sentence is which.
    """
    from bilmo.cli import show
    from bilmo.embed.embedder import load
    from bilmo.store import embeddings
    from bilmo.text.files import lines

    if output.suffix.lower() not in (".h5", ".hdf5"):
        raise OutputError(f"{output}: vectors are written as HDF5; name a file that ends in .h5 or .hdf5")
    elmo = load(model, start=start.value)
    how = _how(mix)
    with show.progress("sentences") as step:
        count = embeddings.write(output, step(_embedded(elmo, lines(sentences), how)))
    print(f"{output}: {count:,} sentences")


def _embedded(elmo: Embedder, rows: Iterator[str], mix: How | All) -> Iterator[tuple[str, NDArray[Any]]]:
    size = 1 if elmo.start == "carry" else AT_ONCE  # to carry is to go on from the very sentence before
    while texts := [row.strip() for row in islice(rows, size)]:
        yield from zip(texts, elmo.embed([text.split() for text in texts], mix=mix), strict=True)


def _how(mix: str) -> How | All:
    named: tuple[How | All, ...] = ("all", "mean", "top", "concat")
    if mix in named:
        return named[named.index(mix)]
    try:
        return tuple(int(number) for number in mix.split(","))
    except ValueError:
        raise ConfigError(
            f"--mix is {mix!r}; known are all, mean, top, concat, or numbers of layers as in 0,1"
        ) from None

"""`bilmo embed`: text to vectors, in a file or on the screen."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bilmo.cli.cache import Precision
from bilmo.errors import ConfigError

if TYPE_CHECKING:
    from bilmo.embed.embedder import All
    from bilmo.embed.inputs import Inputs
    from bilmo.net.mix import How


class Start(StrEnum):
    """What every sentence starts from."""

    settled = "settled"
    zero = "zero"
    carry = "carry"


class Pool(StrEnum):
    """What becomes of the vectors of a sentence."""

    none = "none"
    mean = "mean"
    max = "max"


class DType(StrEnum):
    """How exact a number is kept."""

    float32 = "float32"
    float16 = "float16"


def embed(
    model: Path = typer.Argument(help="A model of any layout."),
    inputs: list[str] = typer.Argument(
        help="Files and folders, plain, .gz, .xz, .zst or .zip, a sentence a line; - for standard input; "
        "or the text itself, in quotes."
    ),
    output: Path | None = typer.Option(
        None,
        "-o",
        "--output",
        help="The file to write: .h5 as AllenNLP's, .parquet, .npy, .npz or .jsonl (.gz, .xz, .zst). "
        "Without it vectors are shown, or written as JSON lines to a pipe.",
    ),
    mix: str | None = typer.Option(
        None,
        help="`all` layers, their `mean`, the `top` one, layers 1 and up side by side (`concat`), "
        "or the mean of some by number, as in `0,1`. [default: all for .h5, mean elsewhere]",
    ),
    pool: Pool = typer.Option(
        Pool.none, help="One vector a sentence: the `mean` or the `max` of its tokens; `none`: one a token."
    ),
    dtype: DType = typer.Option(DType.float32, help="`float16` takes half the room and is right to three digits."),
    split: str = typer.Option(
        "auto", help="How text becomes tokens: auto (looks), spaces (it is split already), en, west, zh."
    ),
    start: Start = typer.Option(
        Start.settled,
        help="`settled`: every sentence starts from the same state, so it always has the same vectors. "
        "`zero`: from nothing. `carry`: where the sentence before ended.",
    ),
    field: str | None = typer.Option(
        None, help="Inputs are JSON lines; embed this field: a text, or a list of tokens."
    ),
    compress: bool = typer.Option(
        False, "--compress", help="Pack .h5 and .npz; smaller, but slower to write and read."
    ),
    precision: Precision = typer.Option(
        Precision.float32, help="`int8` multiplies in eight bits: faster, its vectors close to those of `float32`."
    ),
    cache: Path | None = typer.Option(None, help="Vectors of known words, computed beforehand by `bilmo cache`."),
    threads: int | None = typer.Option(None, min=1, help="Processor cores to use."),
    batch_tokens: int | None = typer.Option(None, min=1, help="Tokens computed at once; changes no vector."),
) -> None:
    """Embed text: a vector for every token, or for every sentence.

    A line is a sentence, and blank lines count. A line of several sentences has each embedded by itself, their tokens
    one after the other. A run that was stopped goes on when the same command is given again, except from standard
    input, which cannot be read twice.
    """
    from bilmo.embed.inputs import Inputs
    from bilmo.embed.output import write as embeddings

    if output is not None:
        embeddings.check(output, compress=compress)
    how = _how(mix if mix is not None else ("all" if output and output.suffix.lower() in (".h5", ".hdf5") else "mean"))
    given = Inputs(tuple(inputs), field=field, besides=output)
    if split == "auto" and not given.typed:
        split = _detected(given)

    from bilmo.cli.show import embedding as show
    from bilmo.embed import job
    from bilmo.embed.load import load

    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    elmo = load(
        model, start=start.value, split=split, batch_tokens=batch_tokens, precision=precision.value, cache=cache
    )
    settings = job.EmbedSettings(
        mix=how, pool=pool.value, dtype=dtype.value, split=split, compress=compress, cache=_named(cache)
    )
    if output is not None:
        show.embedding(job.run(elmo, given, output, settings), output, split)
    elif _is_terminal():
        show.tables(job.rows(elmo, given, settings), settings.spec(elmo))
    else:
        show.json_lines(job.rows(elmo, given, settings), settings.spec(elmo))


def _named(cache: Path | None) -> str:
    """A cache as a run remembers it: by what it holds."""
    from bilmo.store.model_folder import sha256_of

    return "none" if cache is None else sha256_of(cache)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _detected(given: Inputs) -> str:
    """How the text wants to be split; lists of tokens are split already."""
    from bilmo.text.split import detect

    texts = [item for item in given.sample if isinstance(item, str)]
    return detect(texts) if texts or not given.sample else "spaces"


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

"""`bilmo embed`: text to vectors, in a file or on the screen."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bilmo.cli.completion import complete_one_of
from bilmo.cli.options import (
    TEXT_FILES,
    Dictionary,
    DType,
    EmbedDevice,
    Lang,
    Model,
    Multiply,
    Pool,
    Precision,
    SentenceStart,
    Start,
    WordCache,
    Workers,
    mix_of,
)
from bilmo.errors import ConfigError


def embed(
    model: Model,
    inputs: Annotated[
        list[str],
        typer.Argument(
            help=f"Files or folders with one sentence per line: {TEXT_FILES}. Or the text itself, in quotes."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="File to write; its extension selects the format: .h5 (AllenNLP's layout), .parquet, .npy, .npz, or "
            ".jsonl (also .gz, .xz, .zst). Without it, vectors are shown in a terminal, or piped as JSON lines.",
        ),
    ] = None,
    mix: Annotated[
        str | None,
        typer.Option(
            help="Layers to keep. `all`: all of them. `mean`: their mean. `top`: the last one. `concat`: layers 1 and "
            "higher, concatenated. `0,1`: the mean of these layers.",
            show_default="all for .h5, otherwise mean",
            autocompletion=complete_one_of("all", "mean", "top", "concat"),
        ),
    ] = None,
    pool: Annotated[
        Pool,
        typer.Option(
            help="`none`: one vector per token. `mean`, `max`: one vector per sentence, pooled over its tokens."
        ),
    ] = Pool.none,
    dtype: Annotated[
        DType,
        typer.Option(help="Number format of the vectors. `float16` takes half the space and keeps about three digits."),
    ] = DType.float32,
    lang: Lang = "auto",
    dictionary: Dictionary = None,
    start: SentenceStart = Start.settled,
    field: Annotated[
        str | None,
        typer.Option(help="Embed this field of JSON lines (a text or a list of tokens), or this column of CSV or TSV."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the output file if it exists; otherwise that is an error.")
    ] = False,
    compress: Annotated[
        bool, typer.Option("--compress", help="Compress .h5 and .npz files. They are then slower to write and read.")
    ] = False,
    precision: Multiply = Precision.float32,
    device: EmbedDevice = "cpu",
    word_cache: WordCache = None,
    batch_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum number of tokens computed at once; changes vectors only by rounding.",
            show_default="automatic",
        ),
    ] = None,
    workers: Workers = 1,
    ray: Annotated[
        str | None,
        typer.Option(
            help="Embed a folder of text files on a Ray cluster, one Parquet file for each in the folder --output. "
            "`auto`: the cluster of this machine. `local`: start one on this machine. Or an address, HOST:PORT."
        ),
    ] = None,
) -> None:
    """Embed text: one vector per token, or one per sentence.

    Each line, even a blank one, gives one entry in the output. If a line contains several sentences, each is embedded
    separately, and their tokens are concatenated. The same command resumes an interrupted run. A run that reads
    standard input cannot be resumed.
    """
    from bilmo.embed.inputs import Inputs

    given = Inputs(tuple(inputs), field=field)
    how = None if mix is None else mix_of(mix)

    from bilmo import progress
    from bilmo.api import embed as api
    from bilmo.cli.show import embedding as show
    from bilmo.embed import job
    from bilmo.embed.load import load
    from bilmo.embed.options import LoadOptions

    loading = LoadOptions(
        start=start.value,
        lang=lang,
        dictionary=dictionary,
        batch_tokens=batch_tokens,
        precision=precision.value,
        device=device,
        word_cache=word_cache,
    )
    if ray is not None:
        if output is None or workers > 1 or compress or word_cache is not None:
            raise ConfigError(
                "--ray needs --output, a folder, and works without --workers, --compress and --word-cache"
            )
        del loading["word_cache"]
        from bilmo.plug.ray import embed_folder

        with progress.working("loading the model"):
            shards, found = embed_folder(
                model,
                given.paths,
                output,
                address=ray,
                mix="mean" if how is None else how,
                pool=pool.value,
                dtype=dtype.value,
                field=field,
                overwrite=overwrite,
                **loading,
            )
        show.shards(shards, found, output)
        return
    if output is not None:
        events = api.embed_inputs(
            model,
            given,
            output,
            mix=how,
            pool=pool.value,
            dtype=dtype.value,
            overwrite=overwrite,
            compress=compress,
            workers=workers,
            progress=True,
            loading=loading,
        )
        show.embedding(events, output)
        return
    if workers > 1:
        raise ConfigError("--workers needs --output, the file of vectors to write")
    with progress.working("loading the model"):
        elmo = load(model, **loading)
    settings = job.EmbedSettings(mix="mean" if how is None else how, pool=pool.value, dtype=dtype.value, lang=lang)
    if _is_terminal():
        show.tables(job.rows(elmo, given, settings), settings.spec(elmo))
    else:
        show.json_lines(job.rows(elmo, given, settings), settings.spec(elmo))


def _is_terminal() -> bool:
    return sys.stdout.isatty()

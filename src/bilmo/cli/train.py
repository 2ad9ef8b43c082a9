"""`bilmo train`: text to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bilmo.cli.completion import complete_one_of, complete_recipe
from bilmo.cli.options import (
    MOST_THREADS,
    RECIPE_DEFAULT,
    Device,
    Epochs,
    Minutes,
    Rate,
    RecipeLang,
    RunFolder,
    SaveEvery,
    Seed,
    Texts,
)
from bilmo.errors import ConfigError


def _setting(help: str, *values: str) -> Any:
    """An option that replaces one setting of the recipe; the shell completes the values."""
    complete = complete_one_of(*values) if values else None
    return typer.Option(help=help, show_default=RECIPE_DEFAULT, autocompletion=complete)


def train(
    texts: Texts,
    output: RunFolder,
    recipe: Annotated[
        str,
        typer.Option(
            help="`tiny`, `novel`, `small`, `original`, `en`, `zh`, or your own TOML file.",
            autocompletion=complete_recipe,
        ),
    ] = "novel",
    lang: RecipeLang = None,
    dictionary: Annotated[
        Path | None,
        _setting("File of words that are never split, one per line, for Chinese text; it is saved with the model."),
    ] = None,
    minutes: Minutes = None,
    epochs: Epochs = None,
    seed: Seed = None,
    save_every: SaveEvery = None,
    cell: Annotated[str | None, _setting("Recurrent cell: `lstm`, `gru` or `rnn`.", "lstm", "gru", "rnn")] = None,
    words: Annotated[
        str | None,
        _setting(
            "Word encoder: `chars` (character CNN), `table` (one learned vector per word), `chars+table`, "
            "`vectors:FILE` (pretrained word vectors) or `chars+vectors:FILE`.",
            *("chars", "table", "chars+table"),
        ),
    ] = None,
    table_width: Annotated[
        int | None, typer.Option(help="Width of the word table.", show_default="the width of one direction")
    ] = None,
    layers: Annotated[int | None, _setting("Number of recurrent layers in each direction.")] = None,
    cells: Annotated[int | None, _setting("Number of memory cells in an LSTM layer.")] = None,
    width: Annotated[int | None, _setting("Width of one direction; a token vector is twice as wide.")] = None,
    max_words: Annotated[
        int | None,
        _setting("Maximum number of distinct words in memory; rarer words are read as `<UNK>`. For very large texts."),
    ] = None,
    min_count: Annotated[int | None, _setting("Minimum count of a word; rarer words are not predicted.")] = None,
    vocab_size: Annotated[
        int | None, _setting("Maximum number of words to predict; the most frequent ones are kept.")
    ] = None,
    context: Annotated[
        str | None,
        _setting(
            "`sentences`: each sentence separately. `stream`: all sentences in random order as one endless sequence. "
            "`document`: the same in the order of the text.",
            *("sentences", "stream", "document"),
        ),
    ] = None,
    rate: Rate = None,
    dropout: Annotated[float | None, _setting("Dropout; use a higher value for a small corpus.")] = None,
    splitters: Annotated[
        int,
        typer.Option(
            "--workers",
            min=1,
            max=MOST_THREADS,
            help="Number of processes that split the text into words; the model is the same. To train with several "
            "processes, use torchrun.",
        ),
    ] = 1,
    ray: Annotated[
        str | None,
        typer.Option(
            help="Split the text on a Ray cluster. `auto`: the cluster of this machine. `local`: start one on this "
            "machine. Or an address, HOST:PORT."
        ),
    ] = None,
    device: Device = None,
    precision: Annotated[
        str | None,
        _setting("`float32`, or `bfloat16` on GPUs and CPUs that support it.", "float32", "bfloat16"),
    ] = None,
) -> None:
    """Train a model on your own text.

    A recipe contains all settings; each option overrides one of them. The same command resumes a run that was
    interrupted by Ctrl-C or a power failure.
    """
    from bilmo.api import train as api
    from bilmo.cli.show import training
    from bilmo.training.distributed.pieces import Map

    if ray is not None and splitters > 1:
        raise ConfigError("--ray has the text split on a cluster, and --workers on this machine; use one of them")
    given: dict[str, Any] = {
        "lang": lang,
        "dictionary": dictionary,
        "minutes": minutes,
        "epochs": epochs,
        "seed": seed,
        "save_every": save_every,
        "cell": cell,
        "words": words,
        "table_width": table_width,
        "layers": layers,
        "cells": cells,
        "width": width,
        "max_words": max_words,
        "min_count": min_count,
        "vocab_size": vocab_size,
        "context": context,
        "rate": rate,
        "dropout": dropout,
        "device": device,
        "precision": precision,
    }
    settings = {name: value for name, value in given.items() if value is not None}
    where: int | Map = splitters
    if ray is not None:
        from bilmo.plug.ray import on_cluster

        where = on_cluster(ray)
    events = api.train(texts, output, recipe=recipe, workers=where, progress=True, events=True, **settings)
    training.show(events, output, more_words="--vocab-size, --min-count")

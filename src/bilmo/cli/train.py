"""`bilmo train`: text to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer


def train(
    texts: list[Path] = typer.Argument(help="Files or folders of text; plain, .gz, .xz, .zst or .zip; - for input."),
    output: Path = typer.Option(..., "-o", "--output", help="The model folder to make, or to go on with."),
    recipe: str = typer.Option("novel", help="tiny, novel, small, original, en, zh, or a TOML file of your own."),
    lang: str | None = typer.Option(None, help="How text is split: auto, spaces (it is split already), en, west, zh."),
    minutes: float | None = typer.Option(None, help="Train for so long."),
    epochs: float | None = typer.Option(None, help="Train for so many passes over the text."),
    seed: int | None = typer.Option(None, help="The same seed gives the same model."),
    save_every: int | None = typer.Option(None, help="Steps between two checkpoints."),
    cell: str | None = typer.Option(None, help="lstm, gru or rnn."),
    words: str | None = typer.Option(None, help="chars, table, chars+table, vectors:FILE or chars+vectors:FILE."),
    table_width: int | None = typer.Option(None, help="Width of a word table; the network's own unless told."),
    layers: int | None = typer.Option(None, help="Recurrent layers of each direction."),
    cells: int | None = typer.Option(None, help="Memory cells of an LSTM."),
    width: int | None = typer.Option(None, help="Width of one direction; a vector is twice this."),
    min_count: int | None = typer.Option(None, help="Words that are rarer are never predicted."),
    vocab_size: int | None = typer.Option(None, help="The most frequent words that can be predicted."),
    context: str | None = typer.Option(None, help="sentences, each by itself, or one endless stream."),
    rate: float | None = typer.Option(None, help="The highest learning rate."),
    dropout: float | None = typer.Option(None, help="More for small corpora."),
    device: str | None = typer.Option(None, help="auto (a CUDA GPU where there is one), cpu, cuda, cuda:1, mps."),
    precision: str | None = typer.Option(None, help="float32, or bfloat16 for GPUs that have it."),
) -> None:
    """Train a model on your own text.

    The same command again goes on where the run stopped, be it by Ctrl-C or a power cut. A recipe holds all
    settings; options here replace single ones.
    """
    from bilmo.cli.show import tables as show
    from bilmo.train import recipe as recipes
    from bilmo.train import run

    given: dict[str, Any] = {
        "lang": lang,
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
        "min_count": min_count,
        "vocab_size": vocab_size,
        "context": context,
        "rate": rate,
        "dropout": dropout,
        "device": device,
        "precision": precision,
    }
    settings = recipes.read(recipe, {name: value for name, value in given.items() if value is not None})
    events = run.train(texts, output, settings, reading=show.reading)
    show.training(events, output, more_words="--vocab-size, --min-count")

"""`bilmo finetune`: continue to train a model on other text."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from bilmo.cli.options import (
    Device,
    Dictionary,
    Epochs,
    Minutes,
    Model,
    Rate,
    RecipeLang,
    RunFolder,
    SaveEvery,
    Seed,
    Texts,
)


def finetune(
    model: Model,
    texts: Texts,
    output: RunFolder,
    recipe: Annotated[
        str, typer.Option(help="`finetune`, or your own TOML file; its [network] part is ignored.")
    ] = "finetune",
    add_words: Annotated[
        int, typer.Option(min=0, help="Number of new words from the text that the model learns to predict.")
    ] = 0,
    lang: RecipeLang = None,
    dictionary: Dictionary = None,
    minutes: Minutes = None,
    epochs: Epochs = None,
    rate: Rate = None,
    seed: Seed = None,
    save_every: SaveEvery = None,
    device: Device = None,
) -> None:
    """Fine-tune a model on your own text.

    Part of the text is held out. The model is evaluated on it before and during training. The best version is kept; it
    may be the original one. A model without a softmax (old HDF5 files, ELMoForManyLangs) gets a new softmax, which is
    first trained alone; then everything is trained together. The same command resumes an interrupted run.
    """
    from bilmo.api import train as api
    from bilmo.cli.show import training

    given: dict[str, Any] = {
        "lang": lang,
        "dictionary": dictionary,
        "minutes": minutes,
        "epochs": epochs,
        "rate": rate,
        "seed": seed,
        "save_every": save_every,
        "device": device,
    }
    settings = {name: value for name, value in given.items() if value is not None}
    events = api.finetune(
        model, texts, output, recipe=recipe, add_words=add_words, progress=True, events=True, **settings
    )
    training.show(events, output, more_words="--add-words")

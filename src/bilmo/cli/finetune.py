"""`bilmo finetune`: a trained model goes on with other text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from bilmo.errors import OutputError


def finetune(
    model: Path = typer.Argument(help="Any model that bilmo reads; one without a softmax gets a new one."),
    texts: list[Path] = typer.Argument(help="Files or folders of text; plain, .gz, .xz, .zst or .zip; - for input."),
    output: Path = typer.Option(..., "-o", "--output", help="The model folder to make, or to go on with."),
    recipe: str = typer.Option("finetune", help="finetune, or a TOML file of your own; [network] is not used."),
    add_words: int = typer.Option(0, min=0, help="New words of the text that the model learns to predict."),
    lang: str | None = typer.Option(None, help="How text is split: auto, spaces (it is split already), en, west, zh."),
    minutes: float | None = typer.Option(None, help="Train for so long."),
    epochs: float | None = typer.Option(None, help="Train for so many passes over the text."),
    rate: float | None = typer.Option(None, help="The highest learning rate."),
    seed: int | None = typer.Option(None, help="The same seed gives the same model."),
    save_every: int | None = typer.Option(None, help="Steps between two checkpoints."),
    device: str | None = typer.Option(None, help="auto (a CUDA GPU where there is one), cpu, cuda, cuda:1, mps."),
) -> None:
    """Make a model fit your own text better.

    Held-out text of yours is judged before and while it trains; what is kept is the best, which may be the model
    as it came. A model without a softmax (old HDF5 files, ELMoForManyLangs) first gets one, trained alone, then
    everything is trained together. The same command again goes on where the run stopped.
    """
    from bilmo.cli.show import tables as show
    from bilmo.formats import open as layouts
    from bilmo.train import recipe as recipes
    from bilmo.train import run

    if output.resolve() == model.resolve():
        raise OutputError(f"{output}: is the model to go on from; give the new one a place of its own")
    bundle = layouts.read(model)
    given: dict[str, Any] = {
        "lang": lang,
        "minutes": minutes,
        "epochs": epochs,
        "rate": rate,
        "seed": seed,
        "save_every": save_every,
        "device": device,
    }
    settings = recipes.read(recipe, {name: value for name, value in given.items() if value is not None})
    base = run.Base(bundle, str(model), add_words)
    events = run.train(texts, output, settings, base, reading=show.reading)
    show.training(events, output, more_words="--add-words")

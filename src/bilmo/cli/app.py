"""The program `bilmo`: its commands, and how a mistake is shown.

Knows: typer. Blind to: torch, until a command runs.
"""

from __future__ import annotations

import os
import sys

import typer

from bilmo import __version__
from bilmo.cli import (
    cache,
    compare,
    convert,
    embed,
    evaluate,
    finetune,
    fit,
    info,
    models,
    predict,
    score,
    similar,
    train,
)
from bilmo.errors import BilmoError

INTERRUPTED = 130
"""What typer makes of Ctrl-C."""
SPINS = "2000"
"""How often a waiting thread looks before it sleeps."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(models.models)
app.command()(info.info)
app.command()(convert.convert)
app.command()(embed.embed)
app.command()(cache.cache)
app.command()(train.train)
app.command()(finetune.finetune)
app.command()(evaluate.evaluate)
app.command()(similar.similar)
app.add_typer(fit.app, name="fit")
app.command()(predict.predict)
app.command()(score.score)
app.add_typer(compare.app, name="compare")


def _version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def bilmo(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    """Contextual word vectors (ELMo): look into models, convert them, embed text, train on your own.

    A MODEL is the name of one that comes with bilmo (`bilmo models`), or a folder, a zip, or a weights file: bilmo's
    own, bilm-tf's and AllenNLP's `options.json` with HDF5, a TensorFlow checkpoint, or an ELMoForManyLangs folder.
    The layout is found by looking.
    """


def main() -> None:
    """Run a command; a user's mistake is one line on standard error and exit code 1, never a traceback."""
    # Threads that wait would spin on cores that other programs could use, and are slowed down by them in turn; but to
    # wake one costs more than a small operator takes, so they wait for microseconds before they sleep. Both must be set
    # before torch is imported.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
    try:
        app()
    except (BilmoError, OSError) as error:
        print(f"bilmo: {error}", file=sys.stderr)
        sys.exit(1)
    except SystemExit as stop:  # typer ends every run so; where the reader of our output went away, quietly with 1
        if stop.code == INTERRUPTED:
            print("bilmo: interrupted; nothing half-written was left behind", file=sys.stderr)
        raise

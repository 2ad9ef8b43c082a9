"""The program `bilmo`: its commands, and how errors are shown.

Knows: typer. Blind to: torch, until a command runs.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

import typer

from bilmo import __version__
from bilmo.cli import (
    convert,
    embed,
    evaluate,
    finetune,
    get,
    info,
    models,
    plan,
    probability,
    serve,
    train,
    word_cache,
)
from bilmo.cli.options import with_shared_options
from bilmo.cli.sense import draw, fill, index, senses, similar
from bilmo.cli.show import messages, streams
from bilmo.cli.show.examples import FIRST, epilog
from bilmo.cli.tasks import compare, fit, predict, score
from bilmo.errors import BilmoError, ReportedElsewhere

INTERRUPTED = 130
"""The exit code that typer gives after Ctrl-C."""
SPINS = "2000"
"""How often a waiting thread of OpenMP checks for work before it sleeps."""

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _add(panel: str, command: Callable[..., None], *, computes: bool = True) -> None:
    name = command.__name__.replace("_", "-")
    added = app.command(name, epilog=epilog(name), rich_help_panel=panel)
    added(with_shared_options(command, computes=computes))


VECTORS, WORDS, MODELS = "Vectors", "Words and senses", "Models"
TRAINING, TASKS = "Training and evaluation", "Tasks"
_add(VECTORS, embed.embed)
_add(VECTORS, word_cache.word_cache)
_add(VECTORS, serve.serve)
_add(WORDS, similar.similar)
_add(WORDS, index.index)
_add(WORDS, fill.fill)
_add(WORDS, probability.probability)
_add(WORDS, senses.senses)
_add(WORDS, draw.draw)
_add(MODELS, models.models, computes=False)
_add(MODELS, get.get)
_add(MODELS, info.info, computes=False)
_add(MODELS, convert.convert)
_add(MODELS, convert.export)
_add(TRAINING, train.train)
_add(TRAINING, finetune.finetune)
_add(TRAINING, evaluate.evaluate)
_add(TRAINING, plan.plan, computes=False)
_add(TASKS, predict.predict)
_add(TASKS, score.score)
app.add_typer(fit.app, name="fit", epilog=epilog("fit"), rich_help_panel=TASKS)
app.add_typer(compare.app, name="compare", epilog=epilog("compare"), rich_help_panel=TASKS)


def _version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback(epilog=FIRST)
def bilmo(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Contextual word vectors (ELMo): embed text, train on your own text, use old ELMo models.

    A MODEL is the name of an installed model (see `bilmo models`), or the path of a folder, a zip or a weights file.
    bilmo reads its own folders, `options.json` with HDF5 weights (bilm-tf, AllenNLP), TensorFlow checkpoints and
    ELMoForManyLangs folders. The layout is detected automatically.

    `bilmo COMMAND --help` explains a command and ends with examples.
    """


def main() -> None:
    """Run a command. A user's mistake becomes one message on standard error and exit code 1, without a traceback."""
    # Waiting threads should not keep cores busy that other programs could use. But waking a thread takes longer than a
    # small operator, so threads spin for some microseconds before they sleep. torch reads both when it is imported.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):  # net/kernels/packed.py says why
        os.environ.setdefault(name, "32")
    with messages.on_screen():
        try:
            streams.prepare()
            _run()
        except (BilmoError, OSError) as error:
            if messages.is_verbose():
                traceback.print_exc()
            if not isinstance(error, ReportedElsewhere):
                print(f"bilmo: {error}", file=sys.stderr)
            sys.exit(1)


def _run() -> None:
    try:
        app()
    except KeyboardInterrupt:  # outside of the part of typer that expects it
        print("bilmo: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except SystemExit as stop:  # how typer ends every run; also with code 1 if the reader of our output has ended
        if stop.code == INTERRUPTED:
            print("bilmo: interrupted", file=sys.stderr)
        raise
    finally:
        streams.finish()

"""Arguments and options that several commands share, and the values that they accept.

Each is a type for a command's parameter; the command gives the default.

Knows: typer. Blind to: what the commands do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bilmo.cli.completion import complete_model, complete_one_of
from bilmo.errors import ConfigError

if TYPE_CHECKING:
    from bilmo.embed.options import All
    from bilmo.net.mix import How

RECIPE_DEFAULT = "from the recipe"
"""Shown as the default of an option that replaces a setting of the recipe."""
TEXT_FILES = "plain, .gz, .xz, .zst or .zip; - for standard input"


class Start(StrEnum):
    """The state from which a sentence starts."""

    settled = "settled"
    zero = "zero"
    carry = "carry"


class Pool(StrEnum):
    """How the token vectors of a sentence become one vector."""

    none = "none"
    mean = "mean"
    max = "max"


class DType(StrEnum):
    """The number format of vectors and weights in files."""

    float32 = "float32"
    float16 = "float16"


class Precision(StrEnum):
    """The number format of matrix products."""

    float32 = "float32"
    int8 = "int8"


class Layout(StrEnum):
    """The layouts that can be written."""

    bilmo = "bilmo"
    allennlp = "allennlp"


# Arguments

Model = Annotated[
    Path,
    typer.Argument(
        help="Name of an installed model (see `bilmo models`), or path of a folder, zip or weights file. "
        "The layout is detected automatically.",
        autocompletion=complete_model,
    ),
]
Texts = Annotated[list[Path], typer.Argument(help=f"Text files or folders of text files: {TEXT_FILES}.")]

# Text

LANG = (
    "How text is split into tokens: `spaces` (already tokenized), `en` (English), `west` (other languages with spaces "
    "between words), `zh` (Chinese), or `auto`"
)
LIKE_THE_MODEL = f"{LANG} (as the training text of the model; text that is already tokenized is kept)."
DETECTED = f"{LANG} (detected from the first lines)."
LANGS = complete_one_of("auto", "spaces", "en", "west", "zh")
Lang = Annotated[str, typer.Option(help=LIKE_THE_MODEL, autocompletion=LANGS)]
RecipeLang = Annotated[str | None, typer.Option(help=DETECTED, show_default=RECIPE_DEFAULT, autocompletion=LANGS)]

Dictionary = Annotated[
    Path | None,
    typer.Option(
        help="File of words that are never split, one per line, for Chinese text; replaces the model's dictionary.",
        show_default="the model's dictionary, if it has one",
    ),
]

# Computing

MOST_THREADS = 1024
"""More than the largest machines have; the system ends a program that asks for far more."""
SentenceStart = Annotated[
    Start,
    typer.Option(
        help="State before the first token. `settled`: one fixed state, so a sentence always gets the same vectors. "
        "`zero`: zeros. `carry`: the state after the previous sentence, as in the old systems."
    ),
]
Multiply = Annotated[
    Precision,
    typer.Option(
        "--precision",
        help="`int8` computes matrix products with 8-bit integers: faster, with slightly different vectors.",
    ),
]
WordCache = Annotated[Path | None, typer.Option(help="File of precomputed word vectors, made by `bilmo word-cache`.")]
DEVICE = "`auto` (a CUDA GPU if there is one, otherwise the CPU), `cpu`, `cuda`, `cuda:1`, `mps`."
complete_device = complete_one_of("auto", "cpu", "cuda", "mps")
EmbedDevice = Annotated[str, typer.Option("--device", help=DEVICE, autocompletion=complete_device)]

Workers = Annotated[
    int,
    typer.Option(
        min=1,
        max=MOST_THREADS,
        help="Number of processes. Each computes with one thread, and they share one copy of the model.",
    ),
]

# Training

RunFolder = Annotated[
    Path,
    typer.Option(
        "-o", "--output", help="Model folder to create. If it contains an interrupted run, that run is resumed."
    ),
]
Minutes = Annotated[
    float | None, typer.Option(help="Minutes to train, instead of epochs.", show_default=RECIPE_DEFAULT)
]
Epochs = Annotated[
    float | None,
    typer.Option(help="Maximum number of passes over the text; fractions are allowed.", show_default=RECIPE_DEFAULT),
]
Rate = Annotated[float | None, typer.Option(help="Highest learning rate.", show_default=RECIPE_DEFAULT)]
Seed = Annotated[
    int | None, typer.Option(help="Random seed; the same seed gives the same model.", show_default=RECIPE_DEFAULT)
]
SaveEvery = Annotated[
    int | None, typer.Option(help="Number of steps between checkpoints.", show_default=RECIPE_DEFAULT)
]
Device = Annotated[str | None, typer.Option(help=DEVICE, show_default=RECIPE_DEFAULT, autocompletion=complete_device)]

# Results

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for programs.")]

# Options of every command

Threads = Annotated[
    int | None, typer.Option(min=1, max=MOST_THREADS, help="Number of CPU cores to use.", show_default="all")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Show only results, warnings and errors.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Show details, and the traceback of an error.")]


def mix_of(mix: str) -> How | All:
    """A mix as it is typed: a name, or numbers of layers."""
    named: tuple[How | All, ...] = ("all", "mean", "top", "concat")
    if mix in named:
        return named[named.index(mix)]
    try:
        return tuple(int(number) for number in mix.split(","))
    except ValueError:
        raise ConfigError(f"--mix is {mix!r}; accepted: all, mean, top, concat, or layer numbers such as 0,1") from None


def with_shared_options(command: Callable[..., None], *, computes: bool = True) -> Callable[..., None]:
    """Give a command the options that every command has, for typer to see.

    computes: whether it runs a network, so that the number of threads matters.
    """

    @wraps(command)
    def run(*, threads: int | None = None, quiet: bool = False, verbose: bool = False, **given: Any) -> None:
        from bilmo.cli.show import messages

        if quiet and verbose:
            raise ConfigError("--quiet and --verbose contradict each other; use one of them")
        messages.show(quiet=quiet, verbose=verbose)
        if threads is not None:
            if given.get("workers", 1) > 1:
                raise ConfigError("each of several workers computes with one thread; use --workers or --threads")
            import torch

            torch.set_num_threads(threads)
        command(**given)

    shared = {"threads": (Threads, None), "quiet": (Quiet, False), "verbose": (Verbose, False)}
    if not computes:
        del shared["threads"]
    signature = inspect.signature(command, eval_str=True)
    own = list(signature.parameters.values())
    for name, (kind, default) in shared.items():
        own.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind))
    run.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in own}
    return run

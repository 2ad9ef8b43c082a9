"""`bilmo word-cache`: word vectors, computed once for a list of words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bilmo.cli.options import TEXT_FILES, EmbedDevice, Model, Multiply, Precision, Workers


def word_cache(
    model: Model,
    texts: Annotated[
        list[Path],
        typer.Argument(
            metavar="WORDS...",
            help=f"Files or folders of words, separated by spaces or line ends: {TEXT_FILES}.",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write (.safetensors).")],
    precision: Multiply = Precision.float32,
    device: EmbedDevice = "cpu",
    workers: Workers = 1,
) -> None:
    """Compute the context-free vectors of a list of words once, to speed up later runs with the same model.

    Use the file with `bilmo embed --word-cache FILE` or `bilmo.load(..., word_cache=FILE)`, and with the same
    `--precision`. Words that are not in the file are computed as usual. The file changes vectors only by rounding.
    """
    from bilmo.api import embed as api

    number = api.word_cache(
        model, texts, output, precision=precision.value, device=device, workers=workers, progress=True
    )
    print(f"{output}: {number:,} words")

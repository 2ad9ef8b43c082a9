"""`bilmo get`: install a published model."""

from __future__ import annotations

from typing import Annotated

import typer

from bilmo.cli.completion import complete_published


def get(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of a published model; `bilmo models --all` lists them.", autocompletion=complete_published
        ),
    ],
    mirror: Annotated[
        str | None,
        typer.Option(
            help="Address of a copy of the files, with one folder per model, instead of the publisher's address.",
            show_default="BILMO_MIRROR, if it is set",
        ),
    ] = None,
) -> None:
    """Download a published ELMo model, verify it, convert it and install it.

    Afterwards, its name can be used wherever a command takes a MODEL. The same command resumes an interrupted download.
    Models are installed in the user's data folder, or in BILMO_MODELS if it is set. To remove a model, delete its
    folder.
    """
    from bilmo.api import get as api

    folder = api.get(name, mirror=mirror, progress=True)
    print(f"{name}: installed in {folder}")

"""`bilmo models`: the models that are installed, and those that can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bilmo.cli.options import Json

if TYPE_CHECKING:
    from bilmo.store.published import PublishedModel

UNKNOWN = "-"


def models(
    all: Annotated[
        bool, typer.Option("--all", help="List published ELMo models that `bilmo get NAME` installs.")
    ] = False,
    json: Json = False,
) -> None:
    """List the installed models: name, size, training text, and perplexity on held-out documents.

    Use a name wherever a command takes a MODEL. A file or folder of the same name in the current folder takes
    precedence. The model card, README.md in the model's folder, has the details.
    """
    from bilmo.api import models as api
    from bilmo.cli.show import tables as show

    if all:
        found = api.models(all=True)
        if json:
            show.json([vars(model) for model in found])
        else:
            _show_published(found)
    elif json:
        show.json([vars(model) for model in api.models()])
    else:
        show.table(
            ["name", "size", "trained on", "perplexity", "folder"],
            [
                (model.name, f"{model.bytes / 1e6:.1f} MB", model.trained_on, model.perplexity, str(model.folder))
                for model in api.models()
            ],
        )


def _show_published(found: list[PublishedModel]) -> None:
    from bilmo.cli.show import messages
    from bilmo.cli.show import tables as show
    from bilmo.store.installed import installed

    here = installed()
    rows = [
        (
            model.name,
            model.language,
            UNKNOWN if model.parameters is None else f"{model.parameters} M",
            model.licence or UNKNOWN,
            "SHA-256" if model.sha256 else UNKNOWN,
            "yes" if model.name in here else "no",
            model.page,
        )
        for model in found
    ]
    show.table(["name", "language", "parameters", "licence", "checksum", "installed", "from"], rows, left=True)
    messages.note(f"{UNKNOWN} means unknown. `bilmo get NAME` installs a model.")

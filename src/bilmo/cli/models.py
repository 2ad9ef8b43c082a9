"""`bilmo models`: the models that are installed with bilmo."""

from __future__ import annotations


def models() -> None:
    """List the models installed with bilmo: name, size, training text, and perplexity on held-out documents.

    Use a name wherever a command takes a MODEL. A file or folder of the same name in the current folder takes
    precedence. The model card, README.md in the model's folder, has the details.
    """
    from bilmo.api import models as api
    from bilmo.cli.show import tables as show

    show.table(
        ["name", "size", "trained on", "perplexity", "folder"],
        [
            (model.name, f"{model.bytes / 1e6:.1f} MB", model.trained_on, model.perplexity, str(model.folder))
            for model in api.models()
        ],
    )

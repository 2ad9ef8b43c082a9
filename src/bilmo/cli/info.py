"""`bilmo info`: what a model is."""

from __future__ import annotations

from pathlib import Path

import typer


def info(model: Path = typer.Argument(help="A model of any layout.")) -> None:
    """Show what a model is: the layout found, its layers and sizes, parameters of each part.

    Tensors in the files that were not used, and anything else that was decided while reading, come last.
    """
    from bilmo.cli.show import tables as show
    from bilmo.formats import open as layouts
    from bilmo.store.card import facts_of, parts_of

    bundle = layouts.read(model)
    parts = parts_of(bundle)
    show.pairs([("model", str(model)), *facts_of(bundle)])
    print()
    total = ("all", sum(count for _, count in parts))
    show.pairs([(f"{part} parameters", f"{count:,}") for part, count in [*parts, total]], right=True)
    show.notes(bundle.notes)

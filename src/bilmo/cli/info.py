"""`bilmo info`: what a model is."""

from __future__ import annotations

from bilmo.cli.options import Model


def info(model: Model) -> None:
    """Show a model's layout, layers, sizes, and number of parameters.

    Notes at the end list unused tensors and assumed values.
    """
    from bilmo import progress
    from bilmo.cli.show import messages
    from bilmo.cli.show import tables as show
    from bilmo.formats import open as layouts
    from bilmo.store.card import facts_of, parts_of

    with progress.working("reading the model"):
        bundle = layouts.read(model)
    parts = parts_of(bundle)
    show.pairs([("model", str(model)), *facts_of(bundle)])
    print()
    total = ("all", sum(count for _, count in parts))
    show.pairs([(f"{part} parameters", f"{count:,}") for part, count in [*parts, total]], right=True)
    messages.notes(bundle.notes)

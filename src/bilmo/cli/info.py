"""`bilmo info`: layout, layers and sizes of a model."""

from __future__ import annotations

from dataclasses import asdict

from bilmo.cli.options import Json, Model


def info(model: Model, json: Json = False) -> None:
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
    facts, counts = [("model", str(model)), *facts_of(bundle)], [*parts, ("all", sum(count for _, count in parts))]
    if json:
        config = asdict(bundle.config)
        show.json({**dict(facts), "parameters": dict(counts), "config": config, "notes": bundle.notes})
        return
    show.pairs(facts)
    print()
    show.pairs([(f"{part} parameters", f"{count:,}") for part, count in counts], right=True)
    messages.notes(bundle.notes)

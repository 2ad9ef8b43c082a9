"""`bilmo models`: the models that are installed with bilmo."""

from __future__ import annotations


def models() -> None:
    """List the models installed with bilmo: name, size, training text, and perplexity on held-out documents.

    Use a name wherever a command takes a MODEL. A file or folder of the same name in the current folder takes
    precedence. The model card, README.md in the model's folder, has the details.
    """
    from bilmo.cli.show import tables as show
    from bilmo.store.card import fact_in
    from bilmo.store.installed import installed
    from bilmo.store.model_folder import CARD

    rows = []
    for name, folder in installed().items():
        size = sum(file.stat().st_size for file in folder.iterdir())
        card = (folder / CARD).read_text(encoding="utf-8")
        facts = (fact_in(card, what) for what in ("trained on", "perplexity on unseen text"))
        rows.append((name, f"{size / 1e6:.1f} MB", *facts, str(folder)))
    show.table(["name", "size", "trained on", "perplexity", "folder"], rows)

"""`bilmo.models`: the models that are installed with bilmo.

Knows: model folders and their cards. Blind to: the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bilmo.store.card import fact_in
from bilmo.store.installed import installed
from bilmo.store.model_folder import CARD


@dataclass(frozen=True)
class InstalledModel:
    """A model that can be loaded by its name."""

    name: str
    bytes: int
    """Size of its folder."""
    trained_on: str
    """The amount of text."""
    perplexity: str
    """On text that it was not trained on."""
    folder: Path


def models() -> list[InstalledModel]:
    """The installed models, as `bilmo models` lists them; the model card, README.md in the folder, has the details."""
    found = []
    for name, folder in installed().items():
        card = (folder / CARD).read_text(encoding="utf-8")
        found.append(
            InstalledModel(
                name=name,
                bytes=sum(file.stat().st_size for file in folder.iterdir()),
                trained_on=fact_in(card, "trained on"),
                perplexity=fact_in(card, "perplexity on unseen text"),
                folder=folder,
            )
        )
    return found

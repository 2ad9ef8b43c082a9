"""`bilmo.models`: the models that are installed, and those that can be.

Knows: model folders and their cards, published models. Blind to: the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, overload

from bilmo.store.card import fact_in
from bilmo.store.installed import installed
from bilmo.store.model_folder import CARD
from bilmo.store.published import PublishedModel, published


@dataclass(frozen=True)
class InstalledModel:
    """A model that can be loaded by its name."""

    name: str
    bytes: int
    """Size of its folder."""
    trained_on: str
    """Amount of text that it was trained on."""
    perplexity: str
    """Perplexity on text that it was not trained on."""
    folder: Path


@overload
def models(*, all: Literal[False] = False) -> list[InstalledModel]: ...
@overload
def models(*, all: Literal[True]) -> list[PublishedModel]: ...
def models(*, all: bool = False) -> list[InstalledModel] | list[PublishedModel]:
    """The installed models, as `bilmo models` lists them; the model card, README.md in the folder, has the details.

    all: the published models that `bilmo.get` can install, instead of those that are installed.
    """
    if all:
        return list(published().values())
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

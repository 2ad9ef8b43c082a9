"""The list of models that other people published, which `bilmo get` can install.

Knows: published.toml. Blind to: the network, what a model is.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from bilmo.errors import NotAModel

LIST = Path(__file__).parents[1] / "models" / "published.toml"


@dataclass(frozen=True, kw_only=True)
class PublishedModel:
    """A model and where it is. A field that is not known is empty."""

    name: str
    language: str
    publisher: str
    page: str
    """The page that describes it."""
    address: str
    """Beginning of the addresses of its files."""
    files: tuple[str, ...]
    """Paths of its files, which follow the address."""
    text: str = ""
    """Text that it was trained on."""
    licence: str = ""
    parameters: float | None = None
    """Number of parameters, in millions."""
    lang: str = ""
    """How its training text was split."""
    sha256: dict[str, str] = field(default_factory=dict)
    """Checksums by name of a file, as far as they were published."""

    def urls(self, mirror: str | None = None) -> dict[str, str]:
        """The address of each file, by its name; a mirror has one folder per model, with the same names of files."""
        base = f"{mirror.rstrip('/')}/{self.name}/" if mirror else self.address
        return {path.rpartition("/")[2]: base + (path.rpartition("/")[2] if mirror else path) for path in self.files}


def published() -> dict[str, PublishedModel]:
    """All models of the list, by name."""
    found = {}
    for source in tomllib.loads(LIST.read_text(encoding="utf-8"))["source"]:
        shared: dict[str, Any] = {key: value for key, value in source.items() if key != "models"}
        for model in source["models"]:
            found[model["name"]] = PublishedModel(**shared, **{**model, "files": tuple(model["files"])})
    return found


def find(name: str) -> PublishedModel:
    """The published model of this name."""
    models = published()
    if name not in models:
        near = get_close_matches(name, models, n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise NotAModel(f"{name}: is not a published model that bilmo knows.{hint} `bilmo models --all` lists them.")
    return models[name]

"""Models that are found by their names: those that come with bilmo, and those that `bilmo get` installed.

Knows: the file system. Blind to: what a model is.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from bilmo.errors import ConfigError
from bilmo.store.user_folders import models_folder

BOX = Path(__file__).parents[1] / "models"
"""The included models, one folder each."""


def installed() -> dict[str, Path]:
    """Every installed model, by its name; included models come first."""
    found: dict[str, Path] = {}
    folders = [BOX]
    with suppress(ConfigError):  # a user without a home folder
        folders.append(models_folder())
    for folder in folders:
        for config in sorted(folder.glob("*/config.json")):
            if not config.parent.name.startswith("."):  # being written
                found.setdefault(config.parent.name, config.parent)
    return found

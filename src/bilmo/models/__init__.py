"""The models that come with bilmo: a folder for each beside this file, found by its name.

Knows: the file system. Blind to: what a model is.
"""

from __future__ import annotations

from pathlib import Path

BOX = Path(__file__).parent


def names() -> list[str]:
    """Of all models that are installed."""
    return sorted(config.parent.name for config in BOX.glob("*/config.json"))


def folder_of(name: str) -> Path | None:
    """Where a model of this name lies; None if there is none."""
    return BOX / name if name in names() else None

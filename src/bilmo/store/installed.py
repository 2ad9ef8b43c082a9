"""The models that come with bilmo: a folder for each in `models/`, found by its name.

Knows: the file system. Blind to: what a model is.
"""

from __future__ import annotations

from pathlib import Path

BOX = Path(__file__).parents[1] / "models"


def installed() -> dict[str, Path]:
    """Every model that is there, by its name."""
    return {config.parent.name: config.parent for config in sorted(BOX.glob("*/config.json"))}

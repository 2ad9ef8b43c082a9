"""The folders of the user in which bilmo keeps files between runs.

Knows: the environment. Blind to: what is kept.
"""

from __future__ import annotations

import os
from pathlib import Path


def models_folder() -> Path:
    """BILMO_MODELS, or `models` in a folder for bilmo where programs keep the user's data."""
    return _folder("BILMO_MODELS", "XDG_DATA_HOME", Path(".local", "share"), "models")


def layers_folder() -> Path:
    """`layers` in BILMO_CACHE, or in a folder for bilmo where programs keep what can be computed again."""
    return _folder("BILMO_CACHE", "XDG_CACHE_HOME", Path(".cache"), "") / "layers"


def _folder(own: str, shared: str, usual: Path, inside: str) -> Path:
    if given := os.environ.get(own):
        return Path(given)
    return Path(os.environ.get(shared) or Path.home() / usual) / "bilmo" / inside

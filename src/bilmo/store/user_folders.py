"""The folders of the user in which bilmo keeps files between runs.

Knows: the environment. Blind to: what is kept.
"""

from __future__ import annotations

import os
from pathlib import Path


def data_folder() -> Path:
    """BILMO_DATA, or a folder for bilmo where programs keep the user's data: models that were installed by name."""
    return _folder("BILMO_DATA", "XDG_DATA_HOME", Path(".local") / "share")


def cache_folder() -> Path:
    """BILMO_CACHE, or a folder for bilmo where programs keep what can be computed again."""
    return _folder("BILMO_CACHE", "XDG_CACHE_HOME", Path(".cache"))


def _folder(own: str, shared: str, usual: Path) -> Path:
    if given := os.environ.get(own):
        return Path(given)
    return Path(os.environ.get(shared) or Path.home() / usual) / "bilmo"

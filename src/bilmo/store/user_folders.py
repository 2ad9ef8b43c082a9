"""The folders of the user in which bilmo keeps files between runs.

Knows: the environment. Blind to: what is kept.
"""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

from bilmo.errors import ConfigError


def models_folder() -> Path:
    """BILMO_MODELS, or `models` in a folder for bilmo where programs keep the user's data.

    A user without a home folder, as in some containers, has none: a ConfigError.
    """
    return _folder("BILMO_MODELS", "XDG_DATA_HOME", Path(".local", "share"), "models")


def cache_folder(name: str) -> Path:
    """A folder in BILMO_CACHE, or in a folder for bilmo where programs keep what can be computed again.

    For a user without a home folder it is one of this process alone, which is removed when the process ends.
    """
    try:
        return _folder("BILMO_CACHE", "XDG_CACHE_HOME", Path(".cache"), "") / name
    except ConfigError:
        return Path(_process_folder().name) / name


@cache
def _process_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="bilmo-")


def _folder(own: str, shared: str, usual: Path, inside: str) -> Path:
    if given := os.environ.get(own):
        return Path(given)
    try:
        return Path(os.environ.get(shared) or Path.home() / usual) / "bilmo" / inside
    except RuntimeError:  # neither HOME nor an entry in the list of users
        raise ConfigError(
            f"this user has no home folder. Set {own} to a folder in which bilmo may keep files."
        ) from None

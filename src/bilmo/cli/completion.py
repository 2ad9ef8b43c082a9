"""Completion in the shell: names of models and recipes, and values of options.

These functions run at every press of the key, so they import nothing large. If they find nothing, the shell completes
the names of files.

Knows: the file system, names. Blind to: what the commands do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path


def complete_model(incomplete: str) -> list[str]:
    """Names of installed models."""
    from bilmo.store.installed import installed

    return _with_paths(_matching(installed(), incomplete), incomplete)


def complete_published(incomplete: str) -> list[str]:
    """Names of published models."""
    from bilmo.store.published import published

    return _matching(published(), incomplete)


def complete_recipe(incomplete: str) -> list[str]:
    """Names of the recipes of `bilmo train`; that of `bilmo finetune` is its default."""
    shipped = (Path(__file__).parents[1] / "training" / "recipes").glob("*.toml")
    names = sorted(recipe.stem for recipe in shipped if recipe.stem != "finetune")
    return _with_paths(_matching(names, incomplete), incomplete)


def complete_one_of(*values: str) -> Callable[[str], list[str]]:
    """One of some values."""
    return lambda incomplete: _matching(values, incomplete)


def _matching(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _with_paths(names: list[str], incomplete: str) -> list[str]:
    """Names, and files and folders that start in the same way; nothing if no name does."""
    if not names:
        return []
    entries = sorted(entry for entry in Path().iterdir() if entry.name.startswith(incomplete))
    shown = (entry for entry in entries if not entry.name.startswith("."))
    return [*names, *(f"{entry.name}/" if entry.is_dir() else entry.name for entry in shown)]

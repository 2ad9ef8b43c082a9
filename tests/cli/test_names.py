"""One name for one thing: options of all commands, keyword arguments in Python, settings of recipes."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

import bilmo
from bilmo.tasks.classify.settings import ClassifySettings
from bilmo.tasks.tag.settings import TagSettings
from bilmo.training.recipe import NetworkRecipe, TextRecipe, TrainRecipe
from cli.test_help import COMMANDS, TASKS, inner

PAGE = Path(__file__).parents[2] / "docs" / "decisions" / "command-line.md"
ROW = re.compile(r"^\| [^|]+ \| `(--[\w-]+)` \| (?:`(\w+)`)? ?\| (?:`(\w+)`)? ?\|$", re.MULTILINE)
NAMES = ROW.findall(PAGE.read_text(encoding="utf-8"))
"""Option, argument in Python, setting of a recipe; an empty string where there is none."""


def options():
    """The options of each command, by command."""
    found = {}
    for name, command in COMMANDS.items():
        leaves = {f"{name} {task}": inner(command, task) for task in TASKS} if hasattr(command, "get_command") else {}
        for leaf, one in (leaves or {name: command}).items():
            found[leaf] = [parameter for parameter in one.params if parameter.param_type_name == "option"]
    return found


def test_the_table_of_names_is_true():
    assert len(NAMES) >= 11
    shell = {option for found in options().values() for parameter in found for option in parameter.opts}
    python = set(inspect.signature(bilmo.load).parameters) | set(inspect.signature(bilmo.Embedder.embed).parameters)
    python |= set(inspect.signature(bilmo.Tagger).parameters)
    python |= {field.name for kind in (ClassifySettings, TagSettings) for field in fields(kind)}
    recipe = {field.name for kind in (NetworkRecipe, TextRecipe, TrainRecipe) for field in fields(kind)}
    for option, argument, setting in NAMES:
        assert option in shell, option
        assert not argument or argument in python, argument
        assert not setting or setting in recipe, setting
        assert all(name in ("", option.removeprefix("--").replace("-", "_")) for name in (argument, setting))


@pytest.mark.parametrize("name", ["--split", "--elmo", "--at", "--least"])
def test_other_names_for_the_same_thing_are_gone(name):
    assert name not in {option for found in options().values() for parameter in found for option in parameter.opts}

"""Help screens teach: what a command does, what it accepts, its defaults, and examples that work as shown."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import typer

from bilmo.cli.app import app
from bilmo.cli.show.examples import EXAMPLES
from bilmo.tasks import all as tasks

COMMANDS: dict[str, Any] = vars(typer.main.get_command(app))["commands"]
TASKS = tuple(task.name for task in tasks.TASKS)


def test_every_command_has_examples():
    assert EXAMPLES.keys() == COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_screen_says_what_the_command_does_and_ends_with_examples(name, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    done = run(name, "--help")
    assert (done.code, done.err) == (0, "")
    lines = [line.strip() for line in done.out.splitlines() if line.strip()]
    assert lines[0].startswith("Usage: ") and f"bilmo {name}" in lines[0]
    assert lines[1].endswith(".")
    assert lines[-len(EXAMPLES[name]) :] == list(EXAMPLES[name])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_and_option_is_explained(name):
    for parameter in leaves(COMMANDS[name]):
        assert parameter.help, f"{name}: {parameter.name}"
        assert parameter.help.rstrip().endswith("."), f"{name}: {parameter.help}"


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ["fit", "compare"])
def test_the_help_of_a_command_for_one_task_ends_with_its_example(name, task, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    lines = run(name, task, "--help").out.strip().splitlines()
    assert lines[-1].strip().startswith(f"bilmo {name} {task} ")


@pytest.mark.parametrize("command", ["fit classify", "compare classify", "predict"])
def test_the_tab_of_a_format_is_visible(command, run, monkeypatch):
    """Markdown drops what looks like a tag of HTML."""
    monkeypatch.setenv("COLUMNS", "200")
    assert "label<TAB>text" in run(*command.split(), "--help").out


def inner(group, name):
    """One command of a group."""
    return group.get_command(typer.Context(group, info_name=group.name), name)


def leaves(command):
    """The parameters of a command, or of its commands for each task."""
    if not hasattr(command, "get_command"):
        return command.params
    return [parameter for task in TASKS for parameter in inner(command, task).params]


@pytest.mark.parametrize("example", [example for examples in EXAMPLES.values() for example in examples])
def test_examples_use_commands_and_options_that_exist(example):
    program, *rest = shlex.split(example)
    assert program == "bilmo"
    command: Any = typer.main.get_command(app)
    while hasattr(command, "get_command"):
        name, *rest = rest
        command = inner(command, name)
    command.make_context(name, list(rest))  # parses the arguments, and does not run the command

"""Help screens teach: what a command does, what it accepts, its defaults, and examples that work as shown."""

from __future__ import annotations

import shlex

import pytest
import typer

from bilmo.cli.app import app
from bilmo.cli.show.examples import EXAMPLES

COMMANDS = typer.main.get_command(app).commands


def test_every_command_has_examples():
    assert EXAMPLES.keys() == COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_screen_says_what_the_command_does_and_ends_with_examples(name, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    done = run(name, "--help")
    assert (done.code, done.err) == (0, "")
    lines = [line.strip() for line in done.out.splitlines() if line.strip()]
    assert lines[0].startswith("Usage: bilmo")
    assert lines[1].endswith(".")
    assert lines[-len(EXAMPLES[name]) :] == list(EXAMPLES[name])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_and_option_is_explained(name):
    for parameter in leaves(COMMANDS[name]):
        assert parameter.help, f"{name}: {parameter.name}"
        assert parameter.help.rstrip().endswith("."), f"{name}: {parameter.help}"


def leaves(command):
    """The parameters of a command, or of all commands of a group."""
    inner = getattr(command, "commands", {}).values()
    return [parameter for one in inner for parameter in leaves(one)] if inner else command.params


@pytest.mark.parametrize("example", [example for examples in EXAMPLES.values() for example in examples])
def test_examples_use_commands_and_options_that_exist(example):
    program, *rest = shlex.split(example)
    assert program == "bilmo"
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        name, *rest = rest
        command = command.commands[name]
    command.make_context(name, list(rest))  # parses the arguments, and does not run the command

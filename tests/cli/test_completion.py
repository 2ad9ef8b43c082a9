"""Completion with the Tab key: in a real bash, and by the protocols of zsh and fish."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from bilmo.cli import completion

from terminal import Terminal

PROGRAMS = Path(sys.executable).parent
"""Where the program `bilmo` is installed."""
NEEDS_BASH = pytest.mark.skipif(
    shutil.which("bash") is None or not (PROGRAMS / "bilmo").exists(), reason="needs bash and an installed bilmo"
)
SHELLS = {"bash": ".bash_completions/bilmo.sh", "zsh": ".zfunc/_bilmo", "fish": ".config/fish/completions/bilmo.fish"}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home with a model folder and a text in it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-model").mkdir()
    (tmp_path / "text.txt").touch()
    (tmp_path / ".bashrc").write_text("PS1='$ '\n")
    return tmp_path


@contextmanager
def bash(*options):
    """An interactive bash whose prompt is `$ `."""
    with Terminal("bash", *options, env=os.environ | {"PS1": "$ ", "INPUTRC": "/dev/null", "TERM": "dumb"}) as shell:
        shell.read_until("$ ")
        yield shell


@NEEDS_BASH
def test_bash_completes_after_the_script_is_shown_to_it(home):
    with bash("--norc", "--noprofile", "-i") as shell:
        shell.send('eval "$(bilmo --show-completion)"\n')
        shell.read_until("$ ")
        for typed, completed in {
            "bilmo emb": "bilmo embed ",
            "bilmo embed e": "bilmo embed en ",
            "bilmo embed my-": "bilmo embed my-model/",
            "bilmo train text.txt --recipe no": "bilmo train text.txt --recipe novel ",
            "bilmo train te": "bilmo train text.txt ",
            "bilmo get elmo-med\t\t": "elmo-medium",
            "bilmo fit cl": "bilmo fit classify ",
            "bilmo evaluate en text.txt --sta": "bilmo evaluate en text.txt --start ",
            "bilmo convert en new --to al": "bilmo convert en new --to allennlp ",
        }.items():
            shell.send(f"{typed}\t")
            shell.read_until(completed)
            shell.send("\x15")  # Ctrl-U: remove the line


@NEEDS_BASH
def test_completion_is_installed_for_bash(home):
    with bash("--norc", "--noprofile", "-i") as shell:
        shell.send("bilmo --install-completion\n")
        shell.read_until("bash completion installed in")
    assert (home / SHELLS["bash"]).exists()
    with bash("-i") as shell:
        shell.send("bilmo similar z\t")
        shell.read_until("bilmo similar zh ")


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_is_shown_and_installed_for_every_shell(home, shell):
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    for option in ("--show-completion", "--install-completion"):
        done = bilmo(option, shell, env=environment)
        assert done.returncode == 0, done.stderr
        script = done.stdout if option == "--show-completion" else (home / SHELLS[shell]).read_text()
        assert f"complete_{shell}" in script and "bilmo" in script


@pytest.mark.parametrize("shell", ["zsh", "fish"])
@pytest.mark.parametrize(
    ("typed", "found"),
    [("embed e", "en"), ("train t --recipe ti", "tiny"), ("get manylangs-g", "manylangs-grc"), ("fit t", "tag")],
)
def test_names_are_completed_by_the_protocol_of_other_shells(home, shell, typed, found):
    """What the scripts of these shells run; the shells themselves are not needed."""
    environment = os.environ | {"_BILMO_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": f"bilmo {typed}"}
    done = bilmo(env=environment | {"_TYPER_COMPLETE_FISH_ACTION": "get-args"})
    assert done.returncode == 0 and found in done.stdout


def bilmo(*arguments, env):
    """Run the program as a process of its own, under its name, which is part of the protocol."""
    code = "import sys; sys.argv[0] = 'bilmo'; from bilmo.cli.app import main; main(); sys.exit(0)"
    return subprocess.run([sys.executable, "-c", code, *arguments], env=env, capture_output=True, text=True)


def test_nothing_large_is_imported_for_a_press_of_the_key(home):
    code = "import sys, atexit; atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr)); "
    code += "sys.argv[0] = 'bilmo'; from bilmo.cli.app import main; main()"
    environment = os.environ | {"_BILMO_COMPLETE": "complete_bash", "COMP_WORDS": "bilmo\nembed\ne", "COMP_CWORD": "2"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (["en"], "False\n")


def test_files_are_left_to_the_shell_unless_a_name_starts_in_the_same_way(home):
    (home / "entry").mkdir()
    assert completion.complete_model("e") == ["en", "entry/"]
    assert completion.complete_model("my") == []
    assert completion.complete_recipe("t") == ["tiny", "text.txt"]
    assert completion.complete_recipe("fine") == []
    assert completion.complete_one_of("a", "ab", "b")("a") == ["a", "ab"]

"""Tables, notes and progress bars.

Results go to standard output, everything else to standard error. Bars appear on a terminal only.

Knows: rich. Blind to: what is shown.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from bilmo.text.files import STDIN, all_lines

Item = TypeVar("Item")
SHOW_EVERY = 0.1
"""Seconds between two updates of a bar."""


def pairs(rows: Iterable[tuple[str, str]], *, right: bool = False) -> None:
    """Print two columns without lines, the second one to the right for numbers; never cut off in a pipe."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right" if right else "left", overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    _print(table)


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns without lines, all but the first one to the right; never cut off in a pipe."""
    shown = Table(box=None, pad_edge=False)
    for number, name in enumerate(names):
        shown.add_column(name, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        shown.add_row(*row)
    _print(shown)


def _print(table: Table) -> None:
    """Print words as they are, never as markup: `:smile:` is a word."""
    plain = partial(Console, markup=False, emoji=False, highlight=False)
    console = plain()
    console.print(table) if console.is_terminal else plain(width=10_000).print(table, crop=False)


def notes(lines: Iterable[str]) -> None:
    """Print what a user should know about how something was read."""
    for line in lines:
        print(f"note: {line}", file=sys.stderr)


def bar(*columns: ProgressColumn) -> Progress:
    """A progress bar on standard error; it disappears at the end."""
    console = Console(stderr=True, highlight=False)
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=True)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show what takes a moment, and for how long, where the number of steps is unknown."""
    with bar(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as shown:
        shown.add_task(what, total=None)
        yield


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[[Iterable[Item]], Iterator[Item]]]:
    """A bar with rate and time left. The function it gives passes items on and counts them."""
    rate = TextColumn("{task.fields[rate]}")
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), rate, TimeElapsedColumn(), TimeRemainingColumn())
    with bar(*columns) as shown:
        task = shown.add_task(what, total=total, rate="")

        def counted(items: Iterable[Item]) -> Iterator[Item]:
            if shown.disable:
                yield from items
                return
            passed, last = 0, 0.0
            for item in items:
                yield item
                passed += 1
                if time.monotonic() > last + SHOW_EVERY:  # updating the bar takes longer than reading a line
                    last = time.monotonic()
                    speed = shown.tasks[0].speed
                    shown.update(task, completed=passed, rate=f"{speed:,.0f}/s" if speed else "")
            shown.update(task, completed=passed)

        yield counted


@contextmanager
def lines(texts: Sequence[Path]) -> Iterator[Iterator[str]]:
    """The lines of text files, with a bar while they are used.

    The lines are counted first, so that the bar can show the time left; standard input can be read only once.
    """
    total = None
    if STDIN not in texts and sys.stderr.isatty():
        with working("counting lines"):
            total = sum(1 for _ in all_lines(texts))
    with progress("lines", total) as counted:
        yield counted(all_lines(texts))


def reading(lines: Iterable[Item]) -> Iterator[Item]:
    """Pass lines on as they are read, with a count."""
    print("reading the text", file=sys.stderr)
    with progress("lines") as counted:
        yield from counted(lines)

"""How things look in a terminal: tables, notes, progress.

Results go to standard output, everything else to standard error.

Knows: rich. Blind to: what is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

Item = TypeVar("Item")


def pairs(rows: Iterable[tuple[str, str]], *, right: bool = False) -> None:
    """Two columns without lines, the second to the right for numbers; never cut when piped."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right" if right else "left", overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    console = Console(markup=False, highlight=False)
    console.print(table) if console.is_terminal else Console(width=10_000, markup=False).print(table, crop=False)


def notes(lines: Iterable[str]) -> None:
    """What a user should know of how a model was read."""
    for line in lines:
        print(f"note: {line}", file=sys.stderr)


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[[Iterable[Item]], Iterator[Item]]]:
    """A bar with rate and time left while items pass; nothing where standard error is no terminal."""
    rate = TextColumn("{task.fields[rate]}")
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), rate, TimeElapsedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(what, total=total, rate="")

        def counted(items: Iterable[Item]) -> Iterator[Item]:
            for item in items:
                yield item
                speed = bar.tasks[0].speed
                bar.update(task, advance=1, rate=f"{speed:,.0f}/s" if speed else "")

        yield counted

"""Tables of results, on standard output.

Knows: rich. Blind to: what is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import partial
from json import dumps
from pathlib import Path

from rich.console import Console
from rich.table import Table


def pairs(rows: Iterable[tuple[str, str]], *, right: bool = False) -> None:
    """Print two columns without lines, the second one to the right for numbers; never cut off in a pipe."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right" if right else "left", overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    _print(table)


def table(names: Sequence[str], rows: Iterable[Sequence[str]], *, left: bool = False) -> None:
    """Print columns without lines, all but the first one to the right; never cut off in a pipe.

    left: columns of text, to the left, in several lines if the terminal is narrow.
    """
    shown = Table(box=None, pad_edge=False)
    for number, name in enumerate(names):
        shown.add_column(name, justify="right" if number and not left else "left", no_wrap=not left or not number)
    for row in rows:
        shown.add_row(*row)
    _print(shown)


def json(found: object) -> None:
    """Print a result for programs: one JSON value, as UTF-8."""
    text = dumps(found, ensure_ascii=False, indent=1, default=_plain)
    sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass") + b"\n")  # a terminal's encoding may be another
    sys.stdout.buffer.flush()


def _plain(value: object) -> object:
    """A value that JSON does not have; paths are strings."""
    if isinstance(value, Path):
        return str(value)
    raise TypeError(type(value))


def _print(table: Table) -> None:
    """Print words as they are, never as markup: `:smile:` is a word."""
    plain = partial(Console, markup=False, emoji=False, highlight=False)
    console = plain()
    console.print(table) if console.is_terminal else plain(width=10_000).print(table, crop=False)

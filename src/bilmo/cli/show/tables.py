"""How things look in a terminal: tables, notes, progress.

Results go to standard output, everything else to standard error.

Knows: rich. Blind to: what is shown.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

if TYPE_CHECKING:
    from bilmo.train.events import Event, Prepared

Item = TypeVar("Item")
SHOW_EVERY = 0.1
"""Seconds between two sights of a bar."""
YEAR = 365 * 24 * 3600
MANY_UNKNOWN = 0.1
"""Share of unknown words from which on it is said what to do."""


def pairs(rows: Iterable[tuple[str, str]], *, right: bool = False) -> None:
    """Two columns without lines, the second to the right for numbers; never cut when piped."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right" if right else "left", overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    _print(table)


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns without lines, all but the first to the right; never cut when piped."""
    shown = Table(box=None, pad_edge=False)
    for number, name in enumerate(names):
        shown.add_column(name, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        shown.add_row(*row)
    _print(shown)


def _print(table: Table) -> None:
    """As it stands, for words are not markup: `:smile:` is a word."""
    plain = partial(Console, markup=False, emoji=False, highlight=False)
    console = plain()
    console.print(table) if console.is_terminal else plain(width=10_000).print(table, crop=False)


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
            if bar.disable:
                yield from items
                return
            passed, shown = 0, 0.0
            for item in items:
                yield item
                passed += 1
                if time.monotonic() > shown + SHOW_EVERY:  # to show a line costs more than to read one
                    shown = time.monotonic()
                    speed = bar.tasks[0].speed
                    bar.update(task, completed=passed, rate=f"{speed:,.0f}/s" if speed else "")
            bar.update(task, completed=passed)

        yield counted


def reading(lines: Iterable[Item]) -> Iterator[Item]:
    """Lines as they are read, with a count on a terminal."""
    print("reading the text", file=sys.stderr)
    with progress("lines") as counted:
        yield from counted(lines)


def training(events: Iterable[Event], folder: Path, more_words: str) -> None:
    """A training run as it goes: facts first, then a bar on a terminal, and each look at held-out text.

    `more_words`: the options that make the vocabulary larger.
    """
    from bilmo.store.checkpoint import CHECKPOINT
    from bilmo.store.run import RUN
    from bilmo.train.events import Evaluation, Finished, Prepared, Step

    console = Console(stderr=True, highlight=False)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeRemainingColumn(),
    )
    try:
        with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
            task = bar.add_task("training", total=1.0)
            for event in events:
                if isinstance(event, Prepared):
                    _prepared(event, more_words)
                elif isinstance(event, Step):
                    speed = event.words / event.seconds
                    bar.update(task, completed=event.done, description=f"loss {event.loss:.3f}  {speed:,.0f} words/s")
                    if event.skipped:
                        console.print(f"step {event.number}: the loss exploded ({event.loss:.4g}); it is skipped")
                elif isinstance(event, Evaluation):
                    kept = "  best so far" if event.best else ""
                    console.print(
                        f"step {event.number:>7,}  held-out perplexity {event.mean:8.2f}  "
                        f"(forward {event.forward:.2f}, backward {event.backward:.2f}){kept}",
                        soft_wrap=True,
                    )
                elif isinstance(event, Finished):
                    found = event.progress
                    best = "" if found.best is None else f"; held-out perplexity {math.exp(found.best):.2f}"
                    print(f"{folder}: {event.reason}; {found.steps:,} steps in {found.seconds / 60:.1f} minutes{best}")
    except KeyboardInterrupt:
        if (folder / "training" / RUN).exists():
            saved = (folder / "training" / CHECKPOINT).exists()
            where = "goes on from the last checkpoint" if saved else "begins training anew; the text is read already"
            print(f"bilmo: {folder}: the same command {where}", file=sys.stderr)
        raise


def _prepared(event: Prepared, more_words: str) -> None:
    tokens, facts, left = event.corpus.tokens, event.corpus, event.cost.seconds
    many = event.unknown > MANY_UNKNOWN and event.left_out
    advice = f"; a larger vocabulary ({more_words}) makes them fewer" if many else ""
    pairs(
        [
            ("split", event.corpus.lang),
            ("text", f"{tokens['train']:,} words in {facts.sentences['train']:,} sentences"),
            ("held out", f"{tokens['held_out']:,} words in {facts.sentences['held_out']:,} sentences"),
            ("vocabulary", f"{event.vocab:,} words; the text has {facts.words:,} distinct ones"),
            ("unknown words", f"{event.unknown:.2%} of the held-out text{advice}"),
            ("parameters", f"{event.parameters:,}"),
            ("memory", f"{event.cost.memory / 1e9:.1f} GB, about" if event.cost.memory else "unknown"),
            ("time left", f"{timedelta(seconds=round(left))}, about" if left < YEAR else "years"),
            ("run", "goes on" if event.resumed else "new"),
        ]
    )

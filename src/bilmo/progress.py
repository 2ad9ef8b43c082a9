"""Progress bars on standard error, for a caller who asks for them.

Apart from cli/, nothing else writes to the terminal. A bar appears on a terminal or in a notebook, and disappears at
the end; anywhere else there is none.

Knows: rich, text files. Blind to: what takes long.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from bilmo.text.files import STDIN, all_lines

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

Item = TypeVar("Item")
SHOW_EVERY = 0.1
"""Seconds between two updates of a bar."""
hidden = False
"""Whether all bars are hidden; the command line sets it for --quiet."""


class Update(Protocol):
    """Moves a bar."""

    def __call__(self, done: float, note: str = "") -> None:
        """`done` of the total; `note` is shown beside the bar."""


def bar(*columns: ProgressColumn, show: bool = True) -> Progress:
    """A bar with these columns."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, highlight=False)
    visible = show and not hidden and (console.is_terminal or console.is_jupyter)
    return Progress(*columns, console=console, disable=not visible, transient=True)


@contextmanager
def working(what: str, *, show: bool = True) -> Iterator[None]:
    """Show the elapsed time of work whose number of steps is unknown."""
    if not show:
        yield
        return
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    with bar(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as shown:
        shown.add_task(what, total=None)
        yield


@contextmanager
def share_done(what: str, total: float, *, show: bool = True) -> Iterator[Update]:
    """A bar with the share that is done and the time left; the function it gives moves it."""
    if not show:
        yield lambda done, note="": None
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f} %"))
    with bar(*columns, TimeElapsedColumn(), TimeRemainingColumn()) as shown:
        task = shown.add_task(what, total=total)

        def update(done: float, note: str = "") -> None:
            shown.update(task, completed=done, description=f"{what}  {note}" if note else what)

        yield update


@contextmanager
def advancing(what: str, total: float, *, show: bool = True) -> Iterator[Callable[[float], None]]:
    """The same; the function it gives adds to what is done."""
    with share_done(what, total, show=show) as update:
        done = 0.0

        def advance(more: float) -> None:
            nonlocal done
            done += more
            update(done)

        yield advance


class TokenBar:
    """A bar over text that is embedded: the share of its characters that are done, words per second, time left."""

    def __init__(self, shown: Progress) -> None:
        self._shown = shown
        self._task = shown.add_task("embedding", total=None, share="", speed="")
        self.start(None, 0)

    def start(self, total: int | None, done: int) -> None:
        """Characters of the text, if that is known, and of the part of it that is already embedded."""
        self._total, self._done, self._words, self._since = total, done, 0, time.monotonic()
        self._shown.reset(self._task, total=total, completed=done, share=self._share(), speed="")

    def advance(self, characters: int, words: int) -> None:
        """Some more text is embedded."""
        self._done += characters
        self._words += words
        speed = f"{self._words / max(1e-9, time.monotonic() - self._since):,.0f} words/s"
        self._shown.update(self._task, completed=self._done, share=self._share(), speed=speed)

    def _share(self) -> str:
        """The share that is done; for text from a pipe, the total is not known."""
        return f"{self._words:,} words" if self._total is None else f"{100 * self._done / max(1, self._total):.0f} %"


@contextmanager
def embedding(*, show: bool = True) -> Iterator[TokenBar]:
    """A bar for text that is embedded."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    fields = (TextColumn("{task.fields[share]}"), TextColumn("{task.fields[speed]}"))
    times = (TimeElapsedColumn(), TimeRemainingColumn(elapsed_when_finished=True))
    with bar(TextColumn("embedding"), BarColumn(), *fields, *times, show=show) as shown:
        yield TokenBar(shown)


@contextmanager
def counting(
    what: str, total: int | None = None, *, show: bool = True
) -> Iterator[Callable[[Iterable[Item]], Iterator[Item]]]:
    """A bar with rate and time left. The function it gives passes items on and counts them."""
    if not show:
        yield iter
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

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
def lines(texts: Sequence[Path], *, show: bool = True) -> Iterator[Iterator[str]]:
    """The lines of text files, with a bar while they are used.

    If there is a bar, the lines are counted first, so that it can show the time left; but standard input can be read
    only once.
    """
    total = None
    if show and STDIN not in texts and not bar().disable:
        with working("counting lines"):
            total = sum(1 for _ in all_lines(texts))
    with counting("lines", total, show=show) as counted:
        yield counted(all_lines(texts))

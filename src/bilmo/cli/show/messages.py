"""Notes and warnings on standard error, through the logger `bilmo`. `--quiet` and `--verbose` set its level.

Knows: logging, progress bars. Blind to: what is said.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from bilmo import progress

LOG = logging.getLogger("bilmo")
PREFIX = {logging.INFO: "note: ", logging.WARNING: "warning: "}
"""What a line starts with; other levels start with the name of the logger."""


class Screen(logging.Handler):
    """Prints messages when they arrive."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line; a status is printed as it is."""
        prefix = "" if getattr(record, "status", False) else PREFIX.get(record.levelno, f"{record.name}: ")
        print(f"{prefix}{record.getMessage()}", file=sys.stderr)


@contextmanager
def on_screen() -> Iterator[None]:
    """Print messages within a `with` block."""
    screen, before = Screen(), LOG.level
    LOG.addHandler(screen)
    show()
    try:
        yield
    finally:
        LOG.removeHandler(screen)
        LOG.setLevel(before)
        progress.hidden = False


def show(*, quiet: bool = False, verbose: bool = False) -> None:
    """Show notes and progress bars; with `quiet` only warnings and errors; with `verbose` also details."""
    LOG.setLevel(logging.WARNING if quiet else logging.DEBUG if verbose else logging.INFO)
    progress.hidden = quiet


def is_quiet() -> bool:
    """Whether only results, warnings and errors are shown."""
    return not LOG.isEnabledFor(logging.INFO)


def is_verbose() -> bool:
    """Whether details are shown."""
    return LOG.isEnabledFor(logging.DEBUG)


def note(text: str) -> None:
    """Print a note for the user about how something was done."""
    LOG.info("%s", text)


def notes(lines: Iterable[str]) -> None:
    """Several notes."""
    for line in lines:
        note(line)


def status(text: str) -> None:
    """Print what is being done, without a prefix."""
    LOG.info("%s", text, extra={"status": True})

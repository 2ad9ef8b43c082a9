r"""Standard output and standard error: UTF-8 on every system. What UTF-8 cannot hold is escaped, as in \ud800.

Knows: file descriptors. Blind to: what is shown.
"""

from __future__ import annotations

import io
import os
import sys

from bilmo.errors import OutputError


def prepare() -> None:
    """Set up both streams. A closed standard error is discarded; a closed standard output is an error."""
    _fill_closed()
    if sys.stderr is None:  # else notes and errors would go to standard output
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if sys.stdout is None:
        raise OutputError("standard output is closed. Redirect it to a file, or to /dev/null if it is not needed.")


def _fill_closed() -> None:
    """Open the null device in place of closed streams: otherwise a file of bilmo would get the number of a stream.

    Libraries write their warnings to these numbers, and so into that file.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)


def finish() -> None:
    """Write what is left in the buffer of standard output; on failure, discard it and raise the error."""
    try:
        sys.stdout.flush()
    except OSError as error:
        with open(os.devnull, "wb") as null:  # noqa: PTH123
            os.dup2(null.fileno(), sys.stdout.fileno())  # else Python would try again at its end
        if isinstance(error, BrokenPipeError):  # the reader has seen enough
            sys.exit(1)
        raise OutputError(f"standard output: cannot be written ({error.strerror or error})") from None

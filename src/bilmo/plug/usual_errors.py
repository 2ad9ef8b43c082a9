"""A user's mistake as the error that users of the other library expect.

Knows: the error tree. Blind to: every library.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bilmo.errors import BilmoError


@contextmanager
def usual_errors(kind: type[Exception] = ValueError) -> Iterator[None]:
    """Raise an error of bilmo as another kind, with the same message."""
    try:
        yield
    except BilmoError as error:
        raise kind(str(error)) from error

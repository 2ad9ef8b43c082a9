"""What can go wrong for a user, as a tree; a message says what was found, what is accepted, what to do.

    BilmoError
    ├── NotAModel       the path is none of the model layouts
    ├── ConfigError     settings that contradict each other or have the wrong type
    ├── WeightsError    a tensor is missing, misshapen or not a number
    ├── DamagedFile     truncated, altered, or not what its name says
    ├── UnsafeFile      reaches outside itself, or claims an absurd size
    ├── VocabError      a vocabulary or character table that cannot be used
    ├── TextError       input text that cannot be read
    ├── OutputError     the place to write to is taken or cannot be written
    ├── CannotConvert   the other layout cannot hold this model
    ├── NoSoftmax       the model came without the part that was asked for
    └── MissingExtra    an optional package is not installed

Knows: nothing. Blind to: everything else.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


class BilmoError(Exception):
    """Any mistake that the user can mend; the command line shows it without a traceback."""


class NotAModel(BilmoError):  # noqa: N818
    """The path is none of the model layouts."""


class ConfigError(BilmoError):
    """Settings that contradict each other or have the wrong type."""


class WeightsError(BilmoError):
    """A tensor is missing, misshapen or not a number."""


class DamagedFile(BilmoError):  # noqa: N818
    """The file is truncated, altered, or not what its name says."""


class UnsafeFile(BilmoError):  # noqa: N818
    """The file reaches outside itself or claims an absurd size."""


class VocabError(BilmoError):
    """A vocabulary or character table that cannot be used."""


class TextError(BilmoError):
    """Input text that cannot be read."""


class OutputError(BilmoError):
    """The place to write to is taken or cannot be written."""


class CannotConvert(BilmoError):  # noqa: N818
    """The other layout cannot hold this model."""


class NoSoftmax(BilmoError):  # noqa: N818
    """The model came without a softmax."""


class MissingExtra(BilmoError):  # noqa: N818
    """An optional package is not installed."""


def need(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional module at the point of use, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"{purpose} needs the package {module}, which is not installed. "
            f"Install it with: pip install 'bilmo[{extra}]'"
        ) from error

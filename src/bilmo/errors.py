"""The errors that a user can cause, as a tree. A message says what was found, what is accepted and what to do.

    BilmoError
    ├── NotAModel       the path does not contain a model of any known layout
    ├── ConfigError     settings that contradict each other or have the wrong type
    ├── WeightsError    a tensor is missing, has the wrong shape or contains values that are not finite
    ├── DamagedFile     a file is truncated, altered, or not what its name says
    ├── UnsafeFile      a file refers to other files, or claims an absurd size
    ├── VocabError      a vocabulary or character table that cannot be used
    ├── TextError       input text that cannot be read
    ├── OutputError     the output path already exists or cannot be written
    │   └── InUse       another process is writing it
    ├── CannotConvert   the other layout cannot hold this model
    ├── NoSoftmax       the model has no softmax, which the request needs
    ├── MissingExtra    an optional package is not installed
    └── ReportedElsewhere  an error of a run on several processes, which another process reports

Knows: nothing. Blind to: everything else.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


class BilmoError(Exception):
    """Any error that the user can fix; the command line shows it without a traceback."""


class NotAModel(BilmoError):  # noqa: N818
    """The path does not contain a model of any known layout."""


class ConfigError(BilmoError):
    """Settings that contradict each other or have the wrong type."""


class WeightsError(BilmoError):
    """A tensor is missing, has the wrong shape or contains values that are not finite."""


class DamagedFile(BilmoError):  # noqa: N818
    """The file is truncated, altered, or not what its name says."""


class UnsafeFile(BilmoError):  # noqa: N818
    """The file refers to other files or claims an absurd size."""


class VocabError(BilmoError):
    """A vocabulary or character table that cannot be used."""


class TextError(BilmoError):
    """Input text that cannot be read."""


class OutputError(BilmoError):
    """The output path already exists or cannot be written."""


class InUse(OutputError):  # noqa: N818
    """Another process is writing the output."""


class CannotConvert(BilmoError):  # noqa: N818
    """The other layout cannot hold this model."""


class NoSoftmax(BilmoError):  # noqa: N818
    """The model has no softmax."""


class MissingExtra(BilmoError):  # noqa: N818
    """An optional package is not installed."""


class ReportedElsewhere(BilmoError):  # noqa: N818
    """An error of a run on several processes; another process reports it."""


def need(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional module where it is used, or say how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"{purpose} needs the package {module}, which is not installed. "
            f"Install it with: pip install 'bilmo[{extra}]', or in a clone: pip install '.[{extra}]'"
        ) from error

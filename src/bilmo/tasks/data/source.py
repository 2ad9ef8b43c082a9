"""A file of examples: its form and its lines, which are read once.

The first lines are read to detect the form, then handed out with the others, because a file may be a pipe.

Knows: text files, JSON. Blind to: single forms.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeGuard

from bilmo.errors import TextError
from bilmo.text.files import text_lines

COMPRESSED = (".gz", ".xz", ".zst")
PEEK = 100
"""Lines that are read to detect the form of a file."""


@dataclass(frozen=True)
class Source:
    """A file whose form is known, to be read once."""

    path: Path
    form: str
    rows: Iterable[str]
    """All lines; none for a folder."""


def check_form(form: str, accepted: Iterable[str]) -> str | None:
    """The form that was asked for; None for "auto"."""
    names = list(accepted)
    if form not in ("auto", *names):
        raise TextError(f"form is {form!r}; accepted: auto, {', '.join(names)}")
    return None if form == "auto" else form


def peek(path: Path) -> tuple[list[str], Iterator[str]]:
    """The first lines of a file, and all of its lines."""
    rows = text_lines(path)
    first = list(islice(rows, PEEK))
    return first, chain(first, rows)


def suffix(path: Path) -> str:
    """The ending of a file's name, without the one that names a compression."""
    found = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSED]
    return found[-1] if found else ""


def json_object(path: Path, number: int, row: str) -> dict[str, Any]:
    """A line of JSONL as an object."""
    try:
        entry = json.loads(row)
    except (ValueError, RecursionError) as error:
        raise TextError(f"{path}, line {number}: is not JSON ({error})") from None
    if not isinstance(entry, dict):
        raise TextError(f"{path}, line {number}: is {row[:40]!r}; each line must be a JSON object")
    return entry


def is_tokens(value: object) -> TypeGuard[list[str]]:
    """Whether a JSON value is a list of strings."""
    return isinstance(value, list) and all(isinstance(token, str) for token in value)


def first_row(rows: Sequence[str]) -> str:
    """The first line that is not blank; empty where all are."""
    return next((row for row in rows if row.strip()), "")

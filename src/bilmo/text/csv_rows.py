"""Rows of CSV.

Knows: csv. Blind to: what the columns are.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from bilmo.errors import TextError


def csv_rows(path: Path, rows: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, each with the number of its first line.

    A quote that is never closed, or closed by the quote that opens another text, would join all rows between them.
    """
    reader = csv.reader((row + "\n" for row in rows), strict=True)
    first = 1
    try:
        while (row := _next_row(reader)) is not None:
            if any(row):
                yield first, row
            first = reader.line_num + 1
    except csv.Error as error:
        last = f", found in line {reader.line_num}" if reader.line_num > first else ""
        raise TextError(
            f"{path}, line {first}: is not CSV ({error}{last}). If a quote opens in this row, it must be closed, and a "
            'comma or the end of the line must follow. Write a quote inside a quoted text twice: "".'
        ) from None


def first_csv_row(path: Path, first: Iterable[str]) -> list[str]:
    """The first row, from the first lines of a file; empty if it has an error or extends over more than these lines.

    Errors are reported when the file is read.
    """
    try:
        return next(csv_rows(path, first), (0, []))[1]
    except TextError:
        return []


def _next_row(reader: Iterator[list[str]]) -> list[str] | None:
    """The next row, however long its texts are; None at the end. The limit is one of the whole process."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        return next(reader, None)
    finally:
        csv.field_size_limit(limit)

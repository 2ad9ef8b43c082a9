"""Rows of named values from files: TSV and CSV whose first row names the columns, and JSON lines.

Knows: the three forms. Blind to: which names a task needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from bilmo.errors import TextError
from bilmo.tasks.data.source import Source, first_row, json_object, suffix
from bilmo.text.csv_rows import csv_rows, first_csv_row

BY_SUFFIX = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
NamedRow = tuple[int, dict[str, Any]]
"""The number of a line, and its values by name; names are in lower case."""


def named_form(path: Path, first: Sequence[str], enough: Callable[[Collection[str]], bool]) -> str | None:
    """The form of a file by its first lines; None where they are not of these forms.

    enough: whether the names of some columns are those that the task needs.
    """
    row = first_row(first)
    if row.lstrip().startswith("{"):
        return "jsonl"
    if enough(_names(row.split("\t"))):
        return "tsv"
    if enough(_names(first_csv_row(path, first))):
        return "csv"
    return "jsonl" if BY_SUFFIX.get(suffix(path)) == "jsonl" else None


def named_rows(source: Source, needed: Callable[[Collection[str]], str]) -> Iterator[NamedRow]:
    """Rows that are not blank.

    needed: what the names of a table lack, in words; empty where they are complete.
    """
    path = source.path
    if source.form == "jsonl":
        for number, row in enumerate(source.rows, start=1):
            if row.strip():
                yield number, {name.lower(): value for name, value in json_object(path, number, row).items()}
        return
    tabs = ((number, row.split("\t")) for number, row in enumerate(source.rows, start=1) if row.strip())
    rows = tabs if source.form == "tsv" else csv_rows(path, source.rows)
    names: list[str] = []
    for number, cells in rows:
        if not names:
            names = _names(cells)
            if lacks := needed(names):
                shown = ", ".join(names)
                raise TextError(f"{path}, line {number}: names the columns {shown:.200}; {lacks}")
            continue
        if len(cells) > len(names):
            raise TextError(f"{path}, line {number}: {len(cells)} columns; the first row names {len(names)}")
        yield number, dict(zip(names, cells, strict=False))  # columns at the end may be missing


def label_of(path: Path, number: int, row: dict[str, Any], name: str) -> str:
    """The label of a row, under this name."""
    label = row.get(name)
    if label is None:
        raise TextError(f"{path}, line {number}: has no `{name}`")
    if not isinstance(label, str | int):
        raise TextError(f"{path}, line {number}: `{name}` is {label!r}; it must be a string or an integer")
    if not str(label).strip():
        raise TextError(f"{path}, line {number}: the label is empty")
    return str(label).strip()


def _names(cells: Sequence[str]) -> list[str]:
    return [cell.strip().lower() for cell in cells]

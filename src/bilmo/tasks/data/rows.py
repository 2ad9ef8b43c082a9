"""Rows of tables of predictions: with tabs, or as CSV.

Knows: csv. Blind to: what is written.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

SUFFIXES = {".jsonl": "jsonl", ".tsv": "table", ".csv": "csv", ".conll": "conll", ".html": "html"}
"""The form of predictions that the name of a file asks for; a table has tabs between its columns."""


def row(cells: Sequence[object], form: str) -> str:
    """One row as CSV, which can hold any text, or with tabs, where tabs and line ends in a cell become spaces."""
    if form == "csv":
        written = io.StringIO()
        csv.writer(written, lineterminator="").writerow(cells)
        return written.getvalue()
    return "\t".join(str(cell).replace("\t", " ").replace("\r", " ").replace("\n", " ") for cell in cells)

"""Sources and targets from files: two parallel files, TSV, CSV, JSON lines; or sources alone.

Knows: the forms. Blind to: how a text is split, what is learned from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from bilmo.errors import TextError
from bilmo.tasks.data.named import BY_SUFFIX, named_form, named_rows
from bilmo.tasks.data.source import Source, check_form, first_row, is_tokens, peek, suffix
from bilmo.tasks.data.splitting import RawText
from bilmo.text.files import text_lines

FORMS = {
    "parallel": "two files, line by line",
    "tab": "`source<TAB>target`",
    "tsv": "TSV that names its columns",
    "csv": "CSV that names its columns",
    "jsonl": "JSON lines",
    "lines": "sources alone, one per line",
}
NAMED = ("tsv", "csv", "jsonl")
SHOWN = 5
"""The number of lines that a note names."""


@dataclass(frozen=True)
class Fields:
    """The names of source and target in a file, and what a list of strings means there."""

    source: str
    target: str
    lists_are_paragraphs: bool
    """Whether a list is joined into one text; otherwise a list is the tokens of a text."""

    def text(self, path: Path, number: int, row: dict[str, Any], name: str) -> RawText:
        """The text of a row, under this name."""
        value = row.get(name.lower())
        if is_tokens(value):
            return "\n".join(value) if self.lists_are_paragraphs else value
        if isinstance(value, str):
            return value
        found = f"`{name}` is {value!r:.60}" if value is not None else f"has no `{name}`; it has {', '.join(row):.200}"
        raise TextError(f"{path}, line {number}: {found}. It must be a text or a list of strings.")


@dataclass(frozen=True)
class Pairs:
    """The pairs that were read."""

    sources: list[RawText]
    targets: list[RawText]
    form: str
    notes: list[str]


def read_pairs(paths: Sequence[Path], form: str, fields: Fields) -> Pairs:
    """Sources and targets; pairs with an empty side are left out, and named."""
    accepted = [name for name in FORMS if name != "lines"]
    asked = check_form(form, accepted)
    rows: Iterator[tuple[int, RawText, RawText]]
    if len(paths) > 2:
        raise TextError(f"{len(paths)} files; give one file of pairs, or two: sources and targets, line by line")
    if len(paths) == 2:
        if asked not in (None, "parallel"):
            raise TextError(f"form is {asked!r}, but there are two files; two files are read line by line")
        form, rows = "parallel", _parallel(paths[0], paths[1])
    else:
        source = _detect(paths[0], asked, fields)
        form, rows = source.form, _rows(source, fields)
    sources: list[RawText] = []
    targets: list[RawText] = []
    empty: list[int] = []
    for number, a, b in rows:
        if _blank(a) or _blank(b):
            if not (_blank(a) and _blank(b)):
                empty.append(number)
            continue
        sources.append(a)
        targets.append(b)
    if not sources:
        raise TextError(f"{paths[0]}: contains no pairs; every line is blank or has an empty side")
    notes = [f"{named_lines(empty, 'line')}: one side is empty; left out"] if empty else []
    return Pairs(sources, targets, form, notes)


def named_lines(numbers: Sequence[int], what: str) -> str:
    """Some numbers in words: lines 3, 7 and 2 more."""
    more = f" and {len(numbers) - SHOWN:,} more" if len(numbers) > SHOWN else ""
    return f"{what}{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers[:SHOWN]))}{more}"


def read_sources(path: Path, form: str, fields: Fields) -> tuple[str, Iterator[RawText]]:
    """The form of a file of sources, in words, and the sources; targets in it are ignored.

    A blank line of a file without other columns is a source too, so that results match the lines.
    """
    asked = check_form(form, [name for name in FORMS if name != "parallel"])
    first, rows = peek(path)
    found = asked or named_form(path, first, lambda names: fields.source.lower() in names)
    if found is None:
        found = "tab" if suffix(path) == ".tsv" and first_row(first).count("\t") == 1 else "lines"
    source = Source(path, found, rows)
    if found == "lines":
        return FORMS[found], iter(source.rows)
    if found == "tab":
        return FORMS[found], (row.split("\t")[0] for row in source.rows if row.strip())
    named = named_rows(source, lambda names: _lacks(names, [fields.source]))
    return FORMS[found], (fields.text(path, number, row, fields.source) for number, row in named)


def _detect(path: Path, asked: str | None, fields: Fields) -> Source:
    if asked == "parallel":
        raise TextError(f"{path}: is one file; the form parallel needs two, sources and targets")
    first, rows = peek(path)
    found = asked or named_form(path, first, lambda names: not _lacks(names, [fields.source, fields.target]))
    if found is None and BY_SUFFIX.get(suffix(path)) == "csv":
        found = "csv"
    return Source(path, found or "tab", rows)


def _lacks(names: Collection[str], needed: Sequence[str]) -> str:
    missing = [name for name in needed if name.lower() not in names]
    return f"there is no column {', '.join(f'`{name}`' for name in missing)}" if missing else ""


def _rows(source: Source, fields: Fields) -> Iterator[tuple[int, RawText, RawText]]:
    path = source.path
    if source.form in NAMED:
        for number, row in named_rows(source, lambda names: _lacks(names, [fields.source, fields.target])):
            source_text = fields.text(path, number, row, fields.source)
            yield number, source_text, fields.text(path, number, row, fields.target)
        return
    for number, line in enumerate(source.rows, start=1):
        if not line.strip():
            continue
        parts = line.split("\t")
        if len(parts) != 2:
            what = "has no tab" if len(parts) == 1 else f"has {len(parts)} columns"
            raise TextError(
                f"{path}, line {number}: {what}; expected a source, a tab and a target. Other forms: two parallel "
                f"files, a table whose first row names `{fields.source}` and `{fields.target}`, or JSON lines."
            )
        yield number, parts[0], parts[1]


def _parallel(first: Path, second: Path) -> Iterator[tuple[int, str, str]]:
    numbers = [0, 0]

    def counted(which: int, path: Path) -> Iterator[str]:
        for line in text_lines(path):
            numbers[which] += 1
            yield line

    unequal = False
    for number, (a, b) in enumerate(zip_longest(counted(0, first), counted(1, second)), start=1):
        unequal = unequal or a is None or b is None
        if not unequal:
            yield number, a, b
    if unequal:
        raise TextError(
            f"{first} has {numbers[0]:,} lines, {second} has {numbers[1]:,}; line n of one must belong to line n of "
            "the other"
        )


def _blank(text: RawText) -> bool:
    return not text.strip() if isinstance(text, str) else not any(token.strip() for token in text)

"""Sentences with one tag per token from files: CoNLL columns, CoNLL-U, JSONL; or sentences alone.

Knows: the forms. Blind to: what tags mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from bilmo.errors import TextError
from bilmo.tasks.data.source import Source, check_form, first_row, is_tokens, json_object, peek, suffix

FORMS = {
    "conll": "columns with the token first",
    "conllu": "CoNLL-U",
    "jsonl": "JSON lines",
    "lines": "sentences alone, one per line",
}
BY_SUFFIX = {".conllu": "conllu", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
BY_SUFFIX |= {".conll": "conll", ".bio": "conll", ".iob": "conll", ".iob2": "conll"}
UD = {"upos": 3, "xpos": 4}
"""Columns of CoNLL-U that hold tags, by name."""
DIGITS = frozenset("0123456789")
MOST_DIGITS = 6
"""Digits in the number of a column."""


@dataclass(frozen=True)
class Tagged:
    """One example of tagging."""

    tokens: list[str]
    tags: list[str]


def detect_form(path: Path, form: str = "auto") -> Source:
    """The form of tagged sentences: the one asked for, or that of the file's name, or that of its first lines."""
    asked = check_form(form, FORMS)
    first, rows = peek(path)
    return Source(path, asked or _form(path, first) or "conll", rows)


def detect_input_form(path: Path, form: str, is_tag: Callable[[str], bool], column: str) -> Source:
    """The form of sentences to tag. The file may contain tags: columns between spaces are recognized by trained tags.

    Without them, such columns look like sentences.
    """
    asked = check_form(form, FORMS)
    first, rows = peek(path)
    found = _form(path, first)
    if found is None:
        cells = [row.split() for row in first if row.strip() and not row.startswith("-DOCSTART-")]
        place = int(column) - 1 if _is_number(column) else -1
        wide = cells and len(cells[0]) > max(1, place) and all(len(row) == len(cells[0]) for row in cells)
        found = "conll" if wide and all(is_tag(row[place]) for row in cells) else "lines"
    return Source(path, asked or found, rows)


def _form(path: Path, first: list[str]) -> str | None:
    """By the name of a file or its first lines; None for what may be columns between spaces."""
    if suffix(path) in BY_SUFFIX:
        return BY_SUFFIX[suffix(path)]
    row = first_row([row for row in first if not row.startswith("#")])
    if row.lstrip().startswith("{"):
        return "jsonl"
    cells = row.split("\t")
    if len(cells) == 10 and cells[0][:1] in DIGITS:
        return "conllu"
    return "conll" if len(cells) > 1 else None


def read_examples(source: Source, column: str = "") -> list[Tagged]:
    """Sentences and their tags.

    column: upos or xpos of CoNLL-U (default upos); in other columns the number of the one with the tags, counted
        from 1 (default the last).
    """
    if source.form == "lines":
        raise TextError(f"{source.path}: has only sentences, one per line, and no tags")
    found = [Tagged(tokens, tags) for tokens, tags in _entries(source, column, tagged=True) if tags is not None]
    if not found:
        raise TextError(f"{source.path}: contains no tagged sentences")
    return found


def read_sentences(source: Source) -> Iterator[list[str]]:
    """Sentences to tag, one after the other; tags in the file are ignored."""
    return (tokens for tokens, _ in _entries(source, "", tagged=False))


Entry = tuple[list[str], list[str] | None]
"""Tokens and tags."""


def _entries(source: Source, column: str, *, tagged: bool) -> Iterator[Entry]:
    path, rows = source.path, source.rows
    if source.form == "jsonl":
        return _jsonl(path, rows, tagged=tagged)
    if source.form == "conllu":
        if column and column not in UD:
            raise TextError(f"column is {column!r}; accepted for CoNLL-U: {', '.join(UD)}")
        return _columns(_conllu(path, rows, UD[column or "upos"]))
    return _columns(_conll(path, rows, _number(column), tagged=tagged))


def _is_number(column: str) -> bool:
    return column.isdecimal() and len(column) <= MOST_DIGITS


def _number(column: str) -> int:
    if not column:
        return -1
    if not _is_number(column) or int(column) < 2:
        raise TextError(
            f"column is {column!r}; accepted: a column number from 2 (the first has the tokens), "
            f"or {' or '.join(UD)} for CoNLL-U"
        )
    return int(column) - 1


def _columns(entries: Iterable[tuple[str, str | None] | None]) -> Iterator[Entry]:
    """Sentences from tokens and tags; None ends a sentence."""
    tokens: list[str] = []
    tags: list[str | None] = []
    for entry in chain(entries, [None]):
        if entry is not None:
            tokens.append(entry[0])
            tags.append(entry[1])
        elif tokens:
            known = [tag for tag in tags if tag is not None]
            yield tokens, known if len(known) == len(tokens) else None
            tokens, tags = [], []


def _conll(path: Path, rows: Iterable[str], place: int, *, tagged: bool) -> Iterator[tuple[str, str | None] | None]:
    width = 0
    for number, row in enumerate(rows, start=1):
        # A token may be a single space-like character, so lines with tabs are split at tabs only.
        columns = row.rstrip("\n").split("\t") if "\t" in row else row.split()
        if not row.strip() or columns[0] == "-DOCSTART-":
            yield None
            continue
        width = width or len(columns)
        if len(columns) != width:
            raise TextError(f"{path}, line {number}: {len(columns)} columns, but the lines before have {width}")
        if not tagged:
            yield columns[0], None
            continue
        if width < 2 or place >= width:
            needed = f"column {place + 1}" if place >= 0 else "a token and a tag"
            raise TextError(f"{path}, line {number}: {width} columns; expected {needed}: {row[:60]!r}")
        tag = columns[place].strip()
        if not tag:
            raise TextError(f"{path}, line {number}: the tag is empty")
        yield columns[0], tag


def _conllu(path: Path, rows: Iterable[str], place: int) -> Iterator[tuple[str, str | None] | None]:
    for number, row in enumerate(rows, start=1):
        if not row.strip():
            yield None
        elif not row.startswith("#"):
            columns = row.split("\t")
            if len(columns) != 10:
                raise TextError(f"{path}, line {number}: {len(columns)} columns; CoNLL-U has 10, separated by tabs")
            if set(columns[0]) <= DIGITS:  # not a multiword token (3-4), not an empty node (3.1)
                yield columns[1], columns[place]


def _jsonl(path: Path, rows: Iterable[str], *, tagged: bool) -> Iterator[Entry]:
    for number, row in enumerate(rows, start=1):
        if not row.strip():
            continue
        entry = json_object(path, number, row)
        tokens, tags = entry.get("tokens"), entry.get("tags")
        if not is_tokens(tokens):
            raise TextError(f'{path}, line {number}: needs "tokens", a list of strings')
        if tagged and tags is None:
            raise TextError(f'{path}, line {number}: has no "tags"')
        if tags is not None and (not is_tokens(tags) or len(tags) != len(tokens)):
            raise TextError(f'{path}, line {number}: needs "tags", one string for each of {len(tokens)} tokens')
        yield tokens, tags

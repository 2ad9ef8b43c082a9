"""Sentences with a tag a token from files: CoNLL columns, CoNLL-U, JSONL; or sentences alone.

Knows: the forms. Blind to: what tags mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal, get_args

from bilmo.errors import TextError
from bilmo.tasks.texts import ending, is_tokens, json_object
from bilmo.text.files import STDIN, lines

TagForm = Literal["conll", "conllu", "jsonl", "lines"]
UD = {"upos": 3, "xpos": 4}
"""Columns of CoNLL-U that can be learned, by name."""
NUMBERS = frozenset("0123456789")


@dataclass(frozen=True)
class Tagged:
    """An example of tagging."""

    tokens: list[str]
    tags: list[str]


def read(path: Path, form: str = "auto", column: str = "") -> list[Tagged]:
    """Sentences and their tags.

    column: upos or xpos for CoNLL-U (upos where nothing is said); for other columns the number of the one with the
        tags, counted from 1, or the last.
    """
    chosen = _known(form) or form_of(path)
    if chosen == "lines":
        raise TextError(f"{path}: sentences alone, a line each, have no tags to learn from or to compare with")
    found = [Tagged(tokens, tags) for tokens, tags in _entries(path, chosen, lines(path), column) if tags is not None]
    if not found:
        raise TextError(f"{path}: holds no tagged sentences")
    return found


def read_sentences(path: Path, form: str = "auto") -> Iterator[list[str]]:
    """Sentences to tag, one after the other; tags that stand beside them are not looked at."""
    rows: Iterator[str] = iter(lines(path))
    chosen = _known(form)
    if chosen is None and path == STDIN:
        first = next(rows, "")
        chosen = "jsonl" if first.lstrip().startswith("{") else "conll" if "\t" in first else "lines"
        rows = chain([first], rows)
    for tokens, _ in _entries(path, chosen or form_of(path, unlabelled=True), rows, "", tagged=False):
        yield tokens


def _known(form: str) -> TagForm | None:
    if form == "auto":
        return None
    for known in get_args(TagForm):
        if form == known:
            return known  # type: ignore[no-any-return]
    raise TextError(f"form is {form!r}; known are auto, {', '.join(get_args(TagForm))}")


def form_of(path: Path, *, unlabelled: bool = False) -> TagForm:
    """The form of a file by its name, or else by its first lines."""
    named: dict[str, TagForm] = {".conllu": "conllu", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
    named |= {".conll": "conll", ".bio": "conll", ".iob": "conll", ".iob2": "conll"}
    suffix = ending(path)
    if suffix in named:
        return named[suffix]
    for row in lines(path):
        if not row.strip() or row.startswith("#"):
            continue
        if row.lstrip().startswith("{"):
            return "jsonl"
        columns = row.split("\t")
        if len(columns) == 10 and columns[0][:1] in NUMBERS:
            return "conllu"
        return "conll" if not unlabelled or len(columns) > 1 else "lines"
    return "conll"


Entry = tuple[list[str], list[str] | None]


def _entries(path: Path, form: TagForm, rows: Iterable[str], column: str, *, tagged: bool = True) -> Iterator[Entry]:
    if form == "jsonl":
        return _jsonl(path, rows)
    if form == "lines":
        return ((row.split(), None) for row in rows)
    if form == "conllu":
        if column and column not in UD:
            raise TextError(f"column is {column!r}; of CoNLL-U, {' and '.join(UD)} can be learned")
        return _columns(path, _conllu(path, rows, UD[column or "upos"]))
    return _columns(path, _conll(path, rows, _number(column), tagged=tagged))


def _number(column: str) -> int:
    if not column:
        return -1
    if not column.isdecimal() or int(column) < 2:
        raise TextError(
            f"column is {column!r}; needed is the number of a column from 2 on (the first has the tokens), "
            f"or {' or '.join(UD)} for CoNLL-U"
        )
    return int(column) - 1


def _columns(path: Path, entries: Iterable[tuple[str, str | None] | None]) -> Iterator[Entry]:
    """Sentences from tokens and tags; None ends one."""
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
        # A token may be a lone space-like character, so columns with tabs are cut at tabs only.
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
            raise TextError(f"{path}, line {number}: {width} columns; needed is {needed}: {row[:60]!r}")
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
                raise TextError(f"{path}, line {number}: {len(columns)} columns; CoNLL-U has 10, with tabs between")
            if set(columns[0]) <= NUMBERS:  # not a word of several tokens (3-4), not an empty node (3.1)
                yield columns[1], columns[place]


def _jsonl(path: Path, rows: Iterable[str]) -> Iterator[Entry]:
    for number, row in enumerate(rows, start=1):
        if not row.strip():
            continue
        entry = json_object(path, number, row)
        tokens, tags = entry.get("tokens"), entry.get("tags")
        if not is_tokens(tokens):
            raise TextError(f'{path}, line {number}: needed is "tokens", a list of strings')
        if tags is not None and (not is_tokens(tags) or len(tags) != len(tokens)):
            raise TextError(f'{path}, line {number}: needed is "tags", a string for each of {len(tokens)} tokens')
        yield tokens, tags

"""Texts with labels from files: `label<TAB>text`, `label text`, CSV, JSONL, a folder a class; or texts alone.

Knows: the forms. Blind to: how a text is split, what labels mean.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeGuard, get_args

from bilmo.errors import TextError
from bilmo.text.files import STDIN, files, lines

RawText = str | Sequence[str]
"""A text, or its tokens where it came split."""
TextForm = Literal["tab", "space", "csv", "jsonl", "folder", "lines"]
PACKED = (".gz", ".xz", ".zst")
MANY = 20
"""So many labels are never a mistake."""


@dataclass(frozen=True)
class Labelled:
    """An example of classification."""

    text: RawText
    label: str


def read(path: Path, form: str = "auto") -> list[Labelled]:
    """Texts and their labels; a line that is neither blank nor of the form is an error that names it."""
    found = _known(form) or form_of(path)
    if found == "lines":
        raise TextError(f"{path}: texts alone, a line each, have no labels to learn from or to compare with")
    examples = [Labelled(text, label) for label, text in _entries(path, found) if label is not None]
    if not examples:
        raise TextError(f"{path}: holds no examples; every line is blank")
    labels = {example.label for example in examples}
    if found in ("tab", "space") and len(labels) > max(MANY, len(examples) // 2):
        raise TextError(
            f"{path}: {len(labels):,} different labels for {len(examples):,} examples. It was read as "
            f"{_shape(found)}; if it is something else, say so with --form ({', '.join(get_args(TextForm))})."
        )
    return examples


def read_texts(path: Path, form: str = "auto") -> Iterator[RawText]:
    """Texts to answer, one after the other; labels that stand beside them are not looked at."""
    chosen = _known(form) or ("lines" if path == STDIN else form_of(path, unlabelled=True))
    rows: Iterable[str] | None = None
    if path == STDIN and chosen == "lines":
        rows = lines(path)
        first = next(iter(rows), "")
        rows = chain([first], rows)
        chosen = "jsonl" if first.lstrip().startswith("{") else "lines"
    for _, text in _entries(path, chosen, rows):
        yield text


def _known(form: str) -> TextForm | None:
    """The form that was asked for; None leaves it to looking."""
    if form == "auto":
        return None
    for known in get_args(TextForm):
        if form == known:
            return known  # type: ignore[no-any-return]
    raise TextError(f"form is {form!r}; known are auto, {', '.join(get_args(TextForm))}")


def form_of(path: Path, *, unlabelled: bool = False) -> TextForm:
    """The form of a file by its name, or else by its first line."""
    if path.is_dir():
        return "folder"
    suffix = ending(path)
    named: dict[str, TextForm] = {".csv": "csv", ".tsv": "tab", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
    if suffix in named:
        return named[suffix]
    first = next((row for row in lines(path) if row.strip()), "")
    if first.lstrip().startswith("{"):
        return "jsonl"
    if unlabelled:
        return "lines"
    return "tab" if "\t" in first else "space"


def ending(path: Path) -> str:
    """The ending of a file's name, what it is packed in left out."""
    kept = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in PACKED]
    return kept[-1] if kept else ""


def _shape(form: TextForm) -> str:
    return {"tab": "`label<TAB>text`", "space": "`label text`"}.get(form, form)


Entry = tuple[str | None, RawText]


def _entries(path: Path, form: TextForm, rows: Iterable[str] | None = None) -> Iterator[Entry]:
    if form == "folder":
        return _folder(path)
    if form == "csv":
        return _csv(path)
    rows = lines(path) if rows is None else rows
    return {"tab": _tab, "space": _space, "jsonl": _jsonl, "lines": _lines}[form](path, rows)


def _lines(path: Path, rows: Iterable[str]) -> Iterator[Entry]:
    return ((None, row) for row in rows)


def _tab(path: Path, rows: Iterable[str]) -> Iterator[Entry]:
    for number, row in enumerate(rows, start=1):
        if not row.strip():
            continue
        label, tab, text = row.partition("\t")
        if not tab or not label.strip():
            what = "begins with a tab" if tab else "has no tab"
            raise TextError(f"{path}, line {number}: {what}; needed is a label, a tab, and the text: {row[:60]!r}")
        yield label.strip(), text


def _space(path: Path, rows: Iterable[str]) -> Iterator[Entry]:
    for number, row in enumerate(rows, start=1):
        if not row.strip():
            continue
        if row[0].isspace():
            raise TextError(f"{path}, line {number}: begins with a space; needed is a label, a space, and the text")
        label, *text = row.split(maxsplit=1)
        yield label, text[0] if text else ""


def _jsonl(path: Path, rows: Iterable[str]) -> Iterator[Entry]:
    for number, row in enumerate(rows, start=1):
        if row.strip():
            entry = json_object(path, number, row)
            text = entry.get("tokens", entry.get("text"))
            label = entry.get("label")
            if not isinstance(text, str) and not is_tokens(text):
                raise TextError(f'{path}, line {number}: needed is "text", a string, or "tokens", a list of strings')
            if label is not None and not isinstance(label, str | int):
                raise TextError(f'{path}, line {number}: "label" is {label!r}; a string or a whole number is needed')
            yield None if label is None else str(label), text


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


def _csv(path: Path) -> Iterator[Entry]:
    """Columns `label` and `text`, named in the first row; without such a row, the label and the text."""
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader(row + "\n" for row in lines(path))
    places: tuple[int | None, int] | None = None
    try:
        for row in reader:
            if not any(row):
                continue
            if places is None:
                names = [name.strip().lower() for name in row]
                places = (0, 1)
                if "text" in names:
                    places = (names.index("label") if "label" in names else None, names.index("text"))
                    width = len(names)
                    continue
                width = 2
            if len(row) != width:
                raise TextError(
                    f"{path}, line {reader.line_num}: {len(row)} columns; {width} are needed. Without a first row "
                    "that names the columns `label` and `text`, a row is the label and the text."
                )
            label = None if places[0] is None else row[places[0]].strip()
            if label == "":
                raise TextError(f"{path}, line {reader.line_num}: the label is empty")
            yield label, row[places[1]]
    except csv.Error as error:
        raise TextError(f"{path}, line {reader.line_num}: is not CSV ({error})") from None


def _folder(path: Path) -> Iterator[Entry]:
    """Each folder in it is a class, each file in those an example."""
    classes = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    if not classes:
        raise TextError(f"{path}: the folder holds no folders; each class needs one with its texts as files in it")
    for folder in classes:
        for file in files([folder]):
            yield folder.name, "\n".join(lines(file))

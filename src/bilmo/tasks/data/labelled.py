"""Texts with labels from files: `label<TAB>text`, `label text`, CSV, JSONL, a folder a class; or texts alone.

A file is looked into and read in one go, for it may come through a pipe.

Knows: the forms. Blind to: how a text is split, what labels mean.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TypeGuard, get_args

from bilmo.errors import TextError
from bilmo.text.files import files, lines

RawText = str | Sequence[str]
"""A text, or its tokens where it came split."""
TextForm = Literal["tab", "space", "csv", "jsonl", "folder", "lines"]
NAMED = {".csv": "csv", ".tsv": "tab", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
PACKED = (".gz", ".xz", ".zst")
PEEK = 100
"""Lines that are looked at to find out how a file looks."""
MANY = 20
"""So many labels are never a mistake."""
NEEDED = "Give the file a first row that names its columns `label` and `text`."


@dataclass(frozen=True)
class Labelled:
    """An example of classification."""

    text: RawText
    label: str


@dataclass(frozen=True)
class Source:
    """A file that was looked into, to be read once."""

    path: Path
    form: str
    rows: Iterable[str]
    """All of its lines; of a folder, none."""


def look(path: Path, form: str = "auto") -> Source:
    """The form of labelled texts: the one that is asked for, or by the name of the file, or by its first lines."""
    return _look(path, form, _form)


def look_to_answer(path: Path, form: str, is_label: Callable[[str], bool], learned: str) -> Source:
    """The form of texts to answer, which may have labels beside them: labels that were learned give them away.

    learned: the form of the examples. `label text` is looked for only where it is this, for any text looks like it.
    """

    def chosen(path: Path, first: list[str]) -> str:
        form = _form(path, first)
        if form == "csv":
            row = next(_csv_rows(path, first), (0, []))[1]
            if len(row) == 2 and _places(path, row, labelled=False) is None and not _labels(first, ",", is_label):
                raise TextError(
                    f"{path}: two columns without names, and the first holds none of the labels that were learned. "
                    "Name the columns in a first row, `text` among them; or say how the file looks with --form."
                )
        if form == "tab":
            row = next((row for row in first if row.strip()), "").split("\t")
            named = _places(path, row, labelled=False) is not None
            return "tab" if named or _labels(first, "\t", is_label) else "lines"
        if form == "space":
            return "space" if learned == "space" and _labels(first, None, is_label) else "lines"
        return form

    return _look(path, form, chosen)


def _look(path: Path, form: str, chosen: Callable[[Path, list[str]], str]) -> Source:
    asked = known_form(form, get_args(TextForm))
    if asked == "folder" or (asked is None and path.is_dir()):
        return Source(path, "folder", ())
    first, rows = peeked(path)
    return Source(path, asked or chosen(path, first), rows)


def known_form(form: str, known: Sequence[str]) -> str | None:
    """The form that was asked for; None leaves it to looking."""
    if form not in ("auto", *known):
        raise TextError(f"form is {form!r}; known are auto, {', '.join(known)}")
    return None if form == "auto" else form


def peeked(path: Path) -> tuple[list[str], Iterator[str]]:
    """The first lines of a file, and all of them."""
    rows = iter(lines(path))
    first = list(islice(rows, PEEK))
    return first, chain(first, rows)


def _form(path: Path, first: list[str]) -> str:
    if ending(path) in NAMED:
        return NAMED[ending(path)]
    start = next((row for row in first if row.strip()), "")
    if start.lstrip().startswith("{"):
        return "jsonl"
    return "tab" if "\t" in start else "space"


def ending(path: Path) -> str:
    """The ending of a file's name, what it is packed in left out."""
    kept = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in PACKED]
    return kept[-1] if kept else ""


def _labels(first: list[str], mark: str | None, is_label: Callable[[str], bool]) -> bool:
    """Whether at least half of some lines begin with a label and the mark; None is any white space."""
    rows = [row.split(mark, maxsplit=1) for row in first if row.strip()]
    return 0 < len(rows) <= 2 * sum(len(parts) == 2 and is_label(parts[0].strip(' "')) for parts in rows)


def read(path: Path, form: str = "auto") -> list[Labelled]:
    """Texts and their labels."""
    return labelled(look(path, form))


def labelled(source: Source) -> list[Labelled]:
    """Texts and their labels; a line that is neither blank nor of the form is an error that names it."""
    path, form = source.path, source.form
    if form == "lines":
        raise TextError(f"{path}: texts alone, a line each, have no labels to learn from or to compare with")
    examples = [Labelled(text, label) for label, text in _entries(source, labelled=True) if label is not None]
    if not examples:
        raise TextError(f"{path}: holds no examples; every line is blank")
    counts = Counter(example.label for example in examples)
    if form in ("tab", "space", "csv") and len(counts) > max(MANY, len(examples) // 2):
        raise TextError(
            f"{path}: {len(counts):,} different labels for {len(examples):,} examples. It was read as {SHAPES[form]}; "
            f"if it is something else, say so with --form ({', '.join(get_args(TextForm))})."
        )
    first, text = examples[0].label, str(examples[0].text)
    if form in ("tab", "csv") and len(examples) > MANY and counts[first] == 1 and len(text.split()) == 1:
        raise TextError(
            f"{path}: its first row ({first}, {text}) looks like names of columns, for no other row has that label. "
            f"{NEEDED}"
        )
    return examples


SHAPES = {
    "tab": "`label<TAB>text`",
    "space": "`label text`",
    "csv": "CSV with columns `label` and `text`, or just the two",
    "jsonl": "JSON lines",
    "folder": "a folder a class",
    "lines": "texts alone, a line each",
}


def unlabelled(source: Source) -> Iterator[RawText]:
    """Texts to answer, one after the other; labels that stand beside them are not looked at."""
    return (text for _, text in _entries(source, labelled=False))


Entry = tuple[str | None, RawText]


def _entries(source: Source, *, labelled: bool) -> Iterator[Entry]:
    path, rows = source.path, source.rows
    if source.form == "folder":
        return _folder(path)
    if source.form == "lines":
        return ((None, row) for row in rows)
    if source.form == "space":
        return _space(path, rows)
    if source.form == "jsonl":
        return _jsonl(path, rows, labelled=labelled)
    return (_tab if source.form == "tab" else _csv)(path, rows, labelled=labelled)


def _places(path: Path, row: Sequence[str], *, labelled: bool) -> tuple[int | None, int] | None:
    """Where label and text stand, where a row names its columns; None where it does not look so."""
    names = [name.strip().lower() for name in row]
    if "text" in names and ("label" in names or not labelled):
        return names.index("label") if "label" in names else None, names.index("text")
    if "text" in names or ("label" in names and not any(" " in name for name in names)):
        needed = "`label` and `text`" if labelled else "`text`"
        raise TextError(
            f"{path}: its columns are {', '.join(names)}; needed are {needed}. Rename them in the first row."
        )
    return None


def _tab(path: Path, rows: Iterable[str], *, labelled: bool) -> Iterator[Entry]:
    """The label, a tab, the text; or columns that the first row names."""
    places: tuple[int | None, int] | None = None
    width = 0
    for number, row in enumerate(rows, start=1):
        if not row.strip():
            continue
        if not width:
            names = row.split("\t")
            width, places = len(names), _places(path, names, labelled=labelled)
            if places is not None:
                continue
        if places is not None:
            cells = row.split("\t", width - 1)
            if len(cells) != width:
                raise TextError(f"{path}, line {number}: {len(cells)} columns; the first row names {width}")
            label = None if places[0] is None else cells[places[0]].strip()
            if label == "":
                raise TextError(f"{path}, line {number}: the label is empty")
            yield label, cells[places[1]]
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


def _jsonl(path: Path, rows: Iterable[str], *, labelled: bool) -> Iterator[Entry]:
    for number, row in enumerate(rows, start=1):
        if row.strip():
            entry = json_object(path, number, row)
            text = entry.get("tokens", entry.get("text"))
            label = entry.get("label")
            if not isinstance(text, str) and not is_tokens(text):
                raise TextError(f'{path}, line {number}: needed is "text", a string, or "tokens", a list of strings')
            if labelled and label is None:
                raise TextError(f'{path}, line {number}: has no "label", to learn from or to compare with')
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


def _csv(path: Path, rows: Iterable[str], *, labelled: bool) -> Iterator[Entry]:
    """Columns that the first row names; without such a row, the label and the text, or the text alone."""
    places: tuple[int | None, int] | None = None
    width = 0
    for number, row in _csv_rows(path, rows):
        if not width:
            width, places = len(row), _places(path, row, labelled=labelled)
            if places is not None:
                continue
            alone = width == 1 and not labelled
            width, places = (1, (None, 0)) if alone else (2, (0, 1))
        assert places is not None
        if len(row) != width:
            shown = ", ".join(row[:10])
            raise TextError(f"{path}, line {number}: {len(row)} columns ({shown}); {width} are needed. {NEEDED}")
        label = None if places[0] is None else row[places[0]].strip()
        if label == "":
            raise TextError(f"{path}, line {number}: the label is empty")
        yield label, row[places[1]]


def _csv_rows(path: Path, rows: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, each with the number of its last line."""
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader(row + "\n" for row in rows)
    try:
        for row in reader:
            if any(row):
                yield reader.line_num, row
    except csv.Error as error:
        raise TextError(f"{path}, line {reader.line_num}: is not CSV ({error})") from None


def _folder(path: Path) -> Iterator[Entry]:
    """Each folder in it is a class, each file in those an example."""
    if not path.is_dir():
        raise TextError(f"{path}: is no folder; as a folder, each class needs a folder with its texts as files in it")
    classes = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    if not classes:
        raise TextError(f"{path}: the folder holds no folders; each class needs one with its texts as files in it")
    for folder in classes:
        for file in files([folder]):
            yield folder.name, "\n".join(lines(file))

"""Texts with labels from files: `label<TAB>text`, `label text`, CSV, JSONL, one folder per class; or texts alone.

Knows: the forms. Blind to: how a text is split, what labels mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bilmo.errors import TextError
from bilmo.tasks.data.source import Source, check_form, first_row, is_tokens, json_object, peek, suffix
from bilmo.tasks.data.splitting import RawText
from bilmo.text.csv_rows import csv_rows, first_csv_row
from bilmo.text.files import files, text_lines

FORMS = {
    "tab": "`label<TAB>text`",
    "space": "`label text`",
    "csv": "CSV with the columns `label` and `text`",
    "jsonl": "JSON lines",
    "folder": "one folder per class",
    "lines": "texts alone, one per line",
}
BY_SUFFIX = {".csv": "csv", ".tsv": "tab", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
MANY = 20
"""A file with no more labels than this is never taken for a mistake."""
NAME_COLUMNS = "Add a first row that names the columns `label` and `text`."


@dataclass(frozen=True)
class Labelled:
    """One example of classification."""

    text: RawText
    label: str


def detect_form(path: Path, form: str = "auto") -> Source:
    """The form of labelled texts: the one asked for, or that of the file's name, or that of its first lines."""
    return _detect(path, form, _form)


def detect_input_form(path: Path, form: str, is_label: Callable[[str], bool], trained_form: str) -> Source:
    """The form of texts to predict from. The file may contain labels: they are recognized as those of the training.

    trained_form: the form of the training examples. `label text` is accepted only where it is the same, because any
        text looks like it.
    """

    def chosen(path: Path, first: list[str]) -> str:
        found = _form(path, first)
        if found == "csv":
            row = first_csv_row(path, first)
            if len(row) == 2 and _columns(path, row, labelled=False) is None and not _labels(first, ",", is_label):
                raise TextError(
                    f"{path}: two columns without names, and the first does not contain the trained labels. "
                    "Add a first row that names the columns, one of them `text`, or set the format with --form."
                )
        if found == "tab":
            named = _columns(path, first_row(first).split("\t"), labelled=False) is not None
            return "tab" if named or _labels(first, "\t", is_label) else "lines"
        if found == "space":
            return "space" if trained_form == "space" and _labels(first, None, is_label) else "lines"
        return found

    return _detect(path, form, chosen)


def _detect(path: Path, form: str, chosen: Callable[[Path, list[str]], str]) -> Source:
    asked = check_form(form, FORMS)
    if asked == "folder" or (asked is None and path.is_dir()):
        return Source(path, "folder", ())
    first, rows = peek(path)
    return Source(path, asked or chosen(path, first), rows)


def _form(path: Path, first: list[str]) -> str:
    if suffix(path) in BY_SUFFIX:
        return BY_SUFFIX[suffix(path)]
    row = first_row(first)
    if row.lstrip().startswith("{"):
        return "jsonl"
    return "tab" if "\t" in row else "space"


def _labels(first: list[str], separator: str | None, is_label: Callable[[str], bool]) -> bool:
    """Whether at least half of some lines start with a label and the separator; None is any white space."""
    rows = [row.split(separator, maxsplit=1) for row in first if row.strip()]
    return 0 < len(rows) <= 2 * sum(len(parts) == 2 and is_label(parts[0].strip(' "')) for parts in rows)


def read_examples(source: Source) -> list[Labelled]:
    """Texts and their labels; the error for a line that is neither blank nor of the form names the line."""
    path, form = source.path, source.form
    if form == "lines":
        raise TextError(f"{path}: has only texts, one per line, and no labels")
    examples = [Labelled(text, label) for label, text in _entries(source, labelled=True) if label is not None]
    if not examples:
        raise TextError(f"{path}: contains no examples; every line is blank")
    counts = Counter(example.label for example in examples)
    if form in ("tab", "space", "csv") and len(counts) > max(MANY, len(examples) // 2):
        raise TextError(
            f"{path}: {len(counts):,} different labels for {len(examples):,} examples. It was read as {FORMS[form]}; "
            f"if it is something else, set the format with --form ({', '.join(FORMS)})."
        )
    first, text = examples[0].label, str(examples[0].text)
    if form in ("tab", "csv") and len(examples) > MANY and counts[first] == 1 and len(text.split()) == 1:
        raise TextError(
            f"{path}: its first row ({first}, {text}) looks like column names, because no other row has that "
            f"label. {NAME_COLUMNS}"
        )
    return examples


def read_texts(source: Source) -> Iterator[RawText]:
    """Texts to predict from, one after the other; labels in the file are ignored."""
    return (text for _, text in _entries(source, labelled=False))


Entry = tuple[str | None, RawText]
"""Label and text."""


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


def _columns(path: Path, row: Sequence[str], *, labelled: bool) -> tuple[int | None, int] | None:
    """The positions of label and text where a row names its columns; None where it does not look like names."""
    names = [name.strip().lower() for name in row]
    if "text" in names and ("label" in names or not labelled):
        return names.index("label") if "label" in names else None, names.index("text")
    if "text" in names or ("label" in names and not any(" " in name for name in names)):
        needed = "`label` and `text`" if labelled else "`text`"
        raise TextError(f"{path}: its columns are {', '.join(names)}; it needs {needed}. Rename them in the first row.")
    return None


def _tab(path: Path, rows: Iterable[str], *, labelled: bool) -> Iterator[Entry]:
    """The label, a tab and the text; or columns that the first row names."""
    columns: tuple[int | None, int] | None = None
    width = 0
    for number, row in enumerate(rows, start=1):
        if not row.strip():
            continue
        if not width:
            names = row.split("\t")
            width, columns = len(names), _columns(path, names, labelled=labelled)
            if columns is not None:
                continue
        if columns is not None:
            cells = row.split("\t", width - 1)
            if len(cells) != width:
                raise TextError(f"{path}, line {number}: {len(cells)} columns; the first row names {width}")
            label = None if columns[0] is None else cells[columns[0]].strip()
            if label == "":
                raise TextError(f"{path}, line {number}: the label is empty")
            yield label, cells[columns[1]]
            continue
        label, tab, text = row.partition("\t")
        if not tab or not label.strip():
            what = "starts with a tab" if tab else "has no tab"
            raise TextError(f"{path}, line {number}: {what}; expected a label, a tab and the text: {row[:60]!r}")
        yield label.strip(), text


def _space(path: Path, rows: Iterable[str]) -> Iterator[Entry]:
    for number, row in enumerate(rows, start=1):
        if not row.strip():
            continue
        if row[0].isspace():
            raise TextError(f"{path}, line {number}: starts with a space; expected a label, a space and the text")
        label, *text = row.split(maxsplit=1)
        yield label, text[0] if text else ""


def _jsonl(path: Path, rows: Iterable[str], *, labelled: bool) -> Iterator[Entry]:
    for number, row in enumerate(rows, start=1):
        if row.strip():
            entry = json_object(path, number, row)
            text = entry.get("tokens", entry.get("text"))
            label = entry.get("label")
            if not isinstance(text, str) and not is_tokens(text):
                raise TextError(f'{path}, line {number}: needs "text", a string, or "tokens", a list of strings')
            if labelled and label is None:
                raise TextError(f'{path}, line {number}: has no "label"')
            if label is not None and not isinstance(label, str | int):
                raise TextError(f'{path}, line {number}: "label" is {label!r}; it must be a string or an integer')
            yield None if label is None else str(label), text


def _csv(path: Path, rows: Iterable[str], *, labelled: bool) -> Iterator[Entry]:
    """Columns that the first row names; without such a row, label and text, or text alone."""
    columns: tuple[int | None, int] | None = None
    width = 0
    for number, row in csv_rows(path, rows):
        if not width:
            width, columns = len(row), _columns(path, row, labelled=labelled)
            if columns is not None:
                continue
            alone = width == 1 and not labelled
            width, columns = (1, (None, 0)) if alone else (2, (0, 1))
        assert columns is not None
        if len(row) != width:
            shown = ", ".join(row[:10])
            raise TextError(f"{path}, line {number}: {len(row)} columns ({shown}) instead of {width}. {NAME_COLUMNS}")
        label = None if columns[0] is None else row[columns[0]].strip()
        if label == "":
            raise TextError(f"{path}, line {number}: the label is empty")
        yield label, row[columns[1]]


def _folder(path: Path) -> Iterator[Entry]:
    """Each folder in it is a class, and each file in that folder an example."""
    if not path.is_dir():
        raise TextError(f"{path}: is not a folder; this format has one folder per class, with one file per text")
    classes = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    if not classes:
        raise TextError(
            f"{path}: the folder contains no folders; this format has one folder per class, with one file per text"
        )
    for folder in classes:
        for file in files([folder]):
            yield folder.name, "\n".join(text_lines(file))

"""Texts with two marked spans and a relation from files: SemEval-2010 task 8, TSV, CSV, JSONL; or marked texts alone.

Knows: the forms. Blind to: how a text is split, what relations mean.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from bilmo.errors import TextError
from bilmo.tasks.data.named import label_of, named_form, named_rows
from bilmo.tasks.data.source import Source, check_form, first_row, is_tokens, peek
from bilmo.tasks.relate.marks import MARK, NAMES, Related, marked_of

FORMS = {
    "semeval": "the text form of SemEval-2010 task 8",
    "tab": "`label<TAB>text`",
    "tsv": "TSV whose first row names the columns `label` and `text`",
    "csv": "CSV whose first row names the columns `label` and `text`",
    "jsonl": "JSON lines",
    "lines": "marked texts alone, one per line",
}
TEXTS = ("text", "sentence")
"""The names of the text."""
LABELS = ("label", "relation")
"""The names of the relation."""
NUMBERED = re.compile(r"\d+\t")
"""The start of a sentence in the form of SemEval."""
COMMENT = "Comment"
DIRECTED = re.compile(r"[^()]+\((e1,e2|e2,e1)\)")
MANY = 50
"""A file with no more labels than this is never taken for a mistake."""
NEEDED = f"it needs {' or '.join(f'`{name}`' for name in LABELS)}, and {' or '.join(f'`{name}`' for name in TEXTS)}"


def detect_form(path: Path, form: str = "auto") -> Source:
    """The form of texts with relations: the one asked for, or that of the first lines."""
    asked = check_form(form, [name for name in FORMS if name != "lines"])
    first, rows = peek(path)
    return Source(path, asked or _form(path, first), rows)


def detect_input_form(path: Path, form: str = "auto") -> Source:
    """The form of marked texts to predict from."""
    asked = check_form(form, FORMS)
    first, rows = peek(path)
    return Source(path, asked or _form(path, first), rows)


def _form(path: Path, first: list[str]) -> str:
    row = first_row(first)
    if not MARK.search(row) and (found := named_form(path, first, lambda names: _name(names, TEXTS) is not None)):
        return found
    if row.lstrip().startswith("{"):
        return "jsonl"
    if NUMBERED.match(row):
        # Between its sentences, SemEval has lines without a tab; its test set may have sentences only, in quotes.
        others = any(line.strip() and "\t" not in line for line in first)
        return "semeval" if others or row.partition("\t")[2].startswith('"') else "tab"
    return "tab" if "\t" in row else "lines"


def read_examples(source: Source) -> tuple[list[Related], list[str]]:
    """Marked texts and their relations; an error names the line."""
    if source.form == "lines":
        raise TextError(
            f"{source.path}: no form with relations was recognized in its first line. Accepted: "
            f"{', '.join(f'{name} ({what})' for name, what in FORMS.items() if name != 'lines')}"
        )
    found = [(example, label) for example, label in _entries(source, labelled=True) if label is not None]
    if not found:
        raise TextError(f"{source.path}: contains no examples")
    examples, labels = [example for example, _ in found], [label for _, label in found]
    counts = Counter(labels)
    if len(counts) > max(MANY, len(labels) // 2):
        some = ", ".join(list(counts)[:3])
        raise TextError(
            f"{source.path}: {len(counts):,} different labels for {len(labels):,} texts, such as {some:.60}. It was "
            f"read as {FORMS[source.form]}; if it is something else, set the format with --form."
        )
    return examples, labels


def read_texts(source: Source) -> Iterator[Related]:
    """Marked texts to predict from, one after the other; relations in the file are ignored."""
    return (example for example, _ in _entries(source, labelled=False))


Entry = tuple[Related, str | None]
"""A marked text and its relation."""


def _entries(source: Source, *, labelled: bool) -> Iterator[Entry]:
    if source.form == "semeval":
        return _semeval(source, labelled=labelled)
    if source.form in ("tab", "lines"):
        return _rows(source)
    return _named(source, labelled=labelled)


def _semeval(source: Source, *, labelled: bool) -> Iterator[Entry]:
    """A number, a tab and a sentence; its relation in the next line; a comment; an empty line."""
    path = source.path
    sentence: tuple[int, Related] | None = None  # one whose relation was not read yet, with the number of its line

    def without_relation() -> Iterator[Entry]:
        if sentence is not None:
            if labelled:
                raise TextError(f"{path}, line {sentence[0]}: the sentence has no relation in the next line")
            yield sentence[1], None

    for number, row in enumerate(source.rows, start=1):
        if NUMBERED.match(row):
            yield from without_relation()
            text = row.partition("\t")[2].strip()
            quoted = len(text) > 1 and text[0] == text[-1] == '"'
            sentence = number, _checked(path, number, text[1:-1] if quoted else text)
        elif not row.strip() or row.startswith(COMMENT):
            yield from without_relation()
            sentence = None
        elif sentence is not None:
            yield sentence[1], _relation(path, number, row.strip())
            sentence = None
        else:
            raise TextError(f"{path}, line {number}: expected a number, a tab and a sentence; found {row[:60]!r}")
    yield from without_relation()


def _relation(path: Path, number: int, label: str) -> str:
    """A label of SemEval: with a direction, or without, as Other."""
    if ("(" in label or ")" in label) and not DIRECTED.fullmatch(label):
        raise TextError(
            f"{path}, line {number}: unknown label {label[:60]!r}; expected a relation and its direction, such as "
            "Cause-Effect(e1,e2) or Cause-Effect(e2,e1), or a label without direction, such as Other"
        )
    return label


def _rows(source: Source) -> Iterator[Entry]:
    """The relation, a tab and the text; or the text alone."""
    for number, row in enumerate(source.rows, start=1):
        if not row.strip():
            continue
        label, tab, text = row.partition("\t") if source.form == "tab" else ("", "", row)
        if source.form == "tab" and not (tab and label.strip()):
            what = "starts with a tab" if tab else "has no tab"
            raise TextError(f"{source.path}, line {number}: {what}; expected a label, a tab and a text: {row[:60]!r}")
        yield _checked(source.path, number, text), label.strip() or None


def _named(source: Source, *, labelled: bool) -> Iterator[Entry]:
    path = source.path

    def lacks(names: Collection[str]) -> str:
        complete = _name(names, TEXTS) and (_name(names, LABELS) or not labelled)
        return "" if complete else NEEDED

    for number, row in named_rows(source, lacks):
        label = label_of(path, number, row, _name(row, LABELS) or LABELS[0]) if labelled else None
        yield _checked(path, number, _example(path, number, row)), label


def _example(path: Path, number: int, row: dict[str, Any]) -> Related:
    """The text of a row: with marks, or with spans beside it."""
    text = row.get("tokens", row.get(_name(row, TEXTS) or TEXTS[0]))
    if not isinstance(text, str) and not is_tokens(text):
        raise TextError(f'{path}, line {number}: needs "text", a string, or "tokens", a list of strings')
    given = [name for name in NAMES if name in row]
    if isinstance(text, str) and not given:
        return text
    if len(given) < len(NAMES):
        raise TextError(f"{path}, line {number}: needs `e1` and `e2`, the start and the end of each span")
    return text, row[NAMES[0]], row[NAMES[1]]


def _checked(path: Path, number: int, example: Related) -> Related:
    """The same example; a mistake in its marks or spans is an error that names its line."""
    try:
        found = marked_of(example)
    except TextError as error:
        raise TextError(f"{path}, line {number}: {error}") from None
    return example if isinstance(example, str) else (found.text, found.first, found.second)


def _name(names: Collection[str], accepted: Collection[str]) -> str | None:
    return next((name for name in accepted if name in names), None)

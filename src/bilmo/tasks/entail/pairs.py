"""Pairs of texts with labels from files: TSV, CSV and JSONL with named values, as SICK, SNLI and OCNLI; or pairs alone.

Knows: the forms. Blind to: how a text is split, what labels mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bilmo.errors import TextError
from bilmo.tasks.data.named import BY_SUFFIX, label_of, named_form, named_rows
from bilmo.tasks.data.source import Source, check_form, first_row, is_tokens, peek, suffix
from bilmo.tasks.data.splitting import RawText

Pair = tuple[RawText, RawText]
"""Two texts: does the first entail the second?"""
FORMS = {
    "tsv": "TSV whose first row names the columns, as SICK",
    "csv": "CSV whose first row names the columns",
    "jsonl": "JSON lines, as SNLI and OCNLI",
    "lines": "`text1<TAB>text2`, one pair per line",
}
TEXTS = (("text1", "text2"), ("sentence1", "sentence2"), ("sentence_a", "sentence_b"), ("premise", "hypothesis"))
"""The names of the two texts."""
LABELS = ("label", "gold_label", "entailment_judgment", "entailment_label")
"""The names of the label."""
UNDECIDED = "-"
"""The label of pairs whose annotators did not agree, in SNLI and OCNLI."""
MANY = 20
"""A file with no more labels than this is never taken for a mistake."""
NAME_TEXTS = "it needs two texts: " + ", ".join(f"`{a}` and `{b}`" for a, b in TEXTS[:-1])
NAME_TEXTS += ", or `{}` and `{}`".format(*TEXTS[-1])
NAME_LABEL = "it needs a label: " + ", ".join(f"`{name}`" for name in LABELS[:-1]) + f" or `{LABELS[-1]}`"


class Pairs(NamedTuple):
    """Pairs, the label of each, and how many others have none."""

    pairs: list[Pair]
    labels: list[str]
    undecided: int


def detect_form(path: Path, form: str = "auto") -> Source:
    """The form of labelled pairs: the one asked for, or that of the first lines."""
    asked = check_form(form, [name for name in FORMS if name != "lines"])
    first, rows = peek(path)
    found = asked or named_form(path, first, _has_texts)
    if found is None:  # the error about the names in the first row is raised when it is read
        found = "tsv" if "\t" in first_row(first) else BY_SUFFIX.get(suffix(path), "csv")
    return Source(path, found, rows)


def detect_input_form(path: Path, form: str = "auto") -> Source:
    """The form of pairs to predict from; without names, each line has two texts and a tab between them."""
    asked = check_form(form, FORMS)
    first, rows = peek(path)
    return Source(path, asked or named_form(path, first, _has_texts) or "lines", rows)


def read_examples(source: Source) -> Pairs:
    """Pairs and their labels; those that the annotators did not agree on are left out and counted."""
    path = source.path
    pairs: list[Pair] = []
    labels: list[str] = []
    undecided = 0
    for number, row in named_rows(source, _lacks):
        label = label_of(path, number, row, next((name for name in LABELS if name in row), LABELS[0]))
        pair = _texts(path, number, row)
        if label == UNDECIDED:
            undecided += 1
        else:
            pairs.append(pair)
            labels.append(label)
    if not pairs:
        why = f"every pair has the label {UNDECIDED}" if undecided else "there is no line with a pair"
        raise TextError(f"{path}: contains no examples; {why}")
    counts = Counter(labels)
    if len(counts) > max(MANY, len(labels) // 2):
        some = ", ".join(list(counts)[:3])
        raise TextError(
            f"{path}: {len(counts):,} different labels for {len(labels):,} pairs, such as {some:.60}. "
            "The label is probably in another column: rename it in the first row."
        )
    return Pairs(pairs, labels, undecided)


def read_pairs(source: Source) -> Iterator[Pair]:
    """Pairs to predict from, one after the other; labels in the file are ignored."""
    if source.form == "lines":
        return _lines(source)
    rows = named_rows(source, lambda names: "" if _has_texts(names) else NAME_TEXTS)
    return (_texts(source.path, number, row) for number, row in rows)


def _lines(source: Source) -> Iterator[Pair]:
    for number, row in enumerate(source.rows, start=1):
        if row.strip():
            cells = row.split("\t")
            if len(cells) != 2:
                found = "has no tab" if len(cells) == 1 else f"{len(cells)} columns"
                raise TextError(
                    f"{source.path}, line {number}: {found}; expected two texts with a tab between them, or a first "
                    f"row with column names such as {' and '.join(TEXTS[0])}: {row[:60]!r}"
                )
            yield cells[0], cells[1]


def _has_texts(names: Collection[str]) -> bool:
    return any(first in names and second in names for first, second in TEXTS)


def _lacks(names: Collection[str]) -> str:
    if not _has_texts(names):
        return NAME_TEXTS
    return "" if any(name in names for name in LABELS) else NAME_LABEL


def _texts(path: Path, number: int, row: dict[str, Any]) -> Pair:
    for names in TEXTS:
        if all(name in row for name in names):
            first, second = (row[name] for name in names)
            for name, text in zip(names, (first, second), strict=True):
                if not isinstance(text, str) and not is_tokens(text):
                    raise TextError(
                        f"{path}, line {number}: `{name}` is {text!r:.60}; it must be a string or a list of strings"
                    )
            return first, second
    found = ", ".join(row) or "nothing"
    raise TextError(f"{path}, line {number}: has {found:.200}; {NAME_TEXTS}")

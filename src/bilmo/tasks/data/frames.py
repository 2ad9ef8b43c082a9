"""Sentences with predicates and their roles from files: JSONL, CoNLL-2005 and CoNLL-2012 columns; or sentences alone.

Knows: the forms. Blind to: what roles mean, how raw text is split.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from bilmo.errors import TextError
from bilmo.tasks.data import frame_columns
from bilmo.tasks.data.frame_columns import ColumnFrame
from bilmo.tasks.data.source import Source, check_form, first_row, is_tokens, json_object, peek, suffix
from bilmo.tasks.data.spans import OUTSIDE, may_follow_in_bio

FORMS = {
    "jsonl": "JSON lines with `words` and `verbs`",
    "conll2005": "CoNLL-2005 columns",
    "conll2012": "CoNLL-2012 columns",
    "lines": "sentences alone, one per line",
}
BY_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
COLUMNS = (".conll", ".props")
"""Endings of files with columns; which columns they are is detected from the first lines."""


class Frame(NamedTuple):
    """A predicate of a sentence, and the roles of the words around it."""

    predicate: int
    """The position of the predicate among the words, counted from 0."""
    tags: Sequence[str]
    """One BIO tag per word, such as `B-ARG0`, `I-ARG0` or `O`; the predicate itself is `B-V`."""


class Marked(NamedTuple):
    """A sentence whose predicates are known."""

    tokens: Sequence[str]
    predicates: Sequence[int]
    """Positions of the predicates among the tokens, counted from 0."""


@dataclass(frozen=True)
class Framed:
    """One example of role labelling."""

    tokens: list[str]
    frames: list[Frame]


def detect_form(path: Path, form: str = "auto") -> Source:
    """The form of sentences with roles: the one asked for, or that of the file's name, or that of its first lines."""
    asked = check_form(form, FORMS)
    first, rows = peek(path)
    return Source(path, asked or _form(path, first) or "conll2005", rows)


def detect_input_form(path: Path, form: str) -> Source:
    """The form of sentences to label. Columns are recognized by their brackets; other lines are sentences."""
    asked = check_form(form, FORMS)
    first, rows = peek(path)
    found = _form(path, first)
    if found is None:
        columns = suffix(path) in COLUMNS or frame_columns.looks_like_roles(first)
        found = "conll2005" if columns else "lines"
    return Source(path, asked or found, rows)


def _form(path: Path, first: list[str]) -> str | None:
    """By the name of a file or its first lines; None for what may be CoNLL-2005 columns."""
    if suffix(path) in BY_SUFFIX:
        return BY_SUFFIX[suffix(path)]
    if first_row(first).lstrip().startswith("{"):
        return "jsonl"
    return "conll2012" if frame_columns.is_conll2012(first) else None


def read_examples(source: Source) -> list[Framed]:
    """Sentences and the roles in them; the error for a wrong line names the line."""
    if source.form == "lines":
        raise TextError(f"{source.path}: has only sentences, one per line, and no roles")
    found = [
        Framed(tokens, [Frame(index, tags) for index, tags in frames])
        for tokens, frames in _entries(source, labelled=True)
        if frames is not None
    ]
    if not any(example.frames for example in found):
        raise TextError(f"{source.path}: contains no predicates; it was read as {FORMS[source.form]}")
    return found


def read_sentences(source: Source) -> Iterator[list[str] | Marked]:
    """Sentences to label; the predicates that a file marks are kept, and its roles are ignored."""
    for tokens, frames in _entries(source, labelled=False):
        yield tokens if frames is None else Marked(tokens, [index for index, _ in frames])


def _entries(source: Source, *, labelled: bool) -> Iterable[tuple[list[str], list[ColumnFrame] | None]]:
    """Tokens and frames; None where a sentence does not say which predicates it has."""
    if source.form == "jsonl":
        return _jsonl(source.path, source.rows, labelled=labelled)
    if source.form == "conll2012":
        return frame_columns.conll2012(source.path, source.rows)
    return frame_columns.conll2005(source.path, source.rows, labelled=labelled)


def _jsonl(path: Path, rows: Iterable[str], *, labelled: bool) -> Iterator[tuple[list[str], list[ColumnFrame] | None]]:
    for number, row in enumerate(rows, start=1):
        if not row.strip():
            continue
        entry = json_object(path, number, row)
        words, verbs = entry.get("words"), entry.get("verbs")
        if not is_tokens(words):
            raise TextError(f'{path}, line {number}: needs "words", a list of strings')
        if verbs is None and not labelled:
            yield words, None
            continue
        if not isinstance(verbs, list):
            found = 'has no "verbs"' if verbs is None else f'"verbs" is {verbs!r:.40}'
            raise TextError(f"{path}, line {number}: {found}; it must be a list with one object per predicate")
        frames = [_verb(verb, f"{path}, line {number}, verb {k}", labelled) for k, verb in enumerate(verbs, start=1)]
        problem = problem_of(words, frames, tagged=labelled)
        if problem:
            raise TextError(f"{path}, line {number}: {problem}")
        yield words, frames


def _verb(verb: Any, place: str, labelled: bool) -> ColumnFrame:
    if not isinstance(verb, dict):
        raise TextError(f'{place}: is {verb!r:.40}; it must be an object with "index" and "tags"')
    index, tags = verb.get("index"), verb.get("tags")
    if not isinstance(index, int) or isinstance(index, bool):
        found = 'has no "index"' if index is None else f'"index" is {index!r:.40}'
        raise TextError(f"{place}: {found}; it must be the position of the predicate, counted from 0")
    if not labelled:
        return index, []
    if not is_tokens(tags):
        raise TextError(f'{place}: needs "tags", a list with one string per word')
    return index, tags


def problem_of(tokens: Sequence[str], frames: Sequence[ColumnFrame], *, tagged: bool = True) -> str:
    """The mistake in the frames of a sentence; empty if there is none."""
    seen: set[int] = set()
    for index, tags in frames:
        if not 0 <= index < len(tokens):
            return f"a predicate is word {index}, outside the sentence, whose {len(tokens)} words count from 0"
        if index in seen:
            return f"the predicate {tokens[index]!r} (word {index}) occurs twice"
        seen.add(index)
        if not tagged:
            continue
        if len(tags) != len(tokens):
            return f"the predicate {tokens[index]!r} (word {index}) has {len(tags)} tags for {len(tokens)} words"
        for k, (before, tag) in enumerate(pairwise([OUTSIDE, *tags])):
            if not may_follow_in_bio(before, tag):
                return (
                    f"the predicate {tokens[index]!r} (word {index}) has the tag {tag!r} at {tokens[k]!r} (word {k}), "
                    f"after {before!r}; tags are O, B-ROLE, or I-ROLE after a tag of the same role"
                )
    return ""

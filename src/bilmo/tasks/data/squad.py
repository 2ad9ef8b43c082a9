"""Questions about texts from files: SQuAD JSON (1.1 and 2.0), or JSON lines.

Knows: the forms. Blind to: how text is split, how answers are found.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from bilmo.errors import TextError
from bilmo.tasks.data.source import Source, check_form, first_row, json_object, peek

FORMS = {
    "squad": "SQuAD JSON",
    "jsonl": "JSON lines with `context` and `question`",
}
EXPECTED = (
    "expected SQuAD JSON, or JSON lines with `context` and `question`. A single question can be asked with "
    "--context FILE --question TEXT"
)


class Question(NamedTuple):
    """A question about a text."""

    context: str
    question: str
    id: str = ""


class Span(NamedTuple):
    """A part of a text: `context[begin:end]` is `text`."""

    begin: int
    """Number of characters of the context before the part."""
    end: int
    text: str


@dataclass(frozen=True)
class Asked:
    """One example: a question, and all answers that count as correct; none if the text does not answer it."""

    question: Question
    answers: list[Span]


def detect_form(path: Path, form: str = "auto") -> Source:
    """The form of questions: the one asked for, or that of the first lines."""
    asked = check_form(form, FORMS)
    first, rows = peek(path)
    return Source(path, asked or _form(path, first), rows)


def _form(path: Path, first: list[str]) -> str:
    """JSON lines have a question in the first line; SQuAD is one object, in one line or in many."""
    row = first_row(first)
    if first and not row.lstrip().startswith("{"):
        raise TextError(f"{path}, line 1: is {row[:40]!r}; {EXPECTED}")
    try:
        found = json.loads(row) if row else {}
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        several = len([row for row in first if row.strip()]) > 1 and first_row(first).rstrip().endswith("}")
        return "jsonl" if several else "squad"  # a broken line of many, or the start of an object over many lines
    return "squad" if "data" in found else "jsonl"


def read_examples(source: Source) -> list[Asked]:
    """Questions and their answers; the error for a wrong one names its place."""
    found = [Asked(question, answers or []) for question, answers in _entries(source, answered=True)]
    if not found:
        raise TextError(f"{source.path}: contains no questions; it was read as {FORMS[source.form]}")
    return found


def read_questions(source: Source) -> Iterator[Question]:
    """Questions to answer; answers in the file are ignored."""
    return (question for question, _ in _entries(source, answered=False))


def _entries(source: Source, *, answered: bool) -> Iterator[tuple[Question, list[Span] | None]]:
    if source.form == "squad":
        return _squad(source.path, source.rows, answered=answered)
    return _jsonl(source.path, source.rows, answered=answered)


def _jsonl(path: Path, rows: Iterable[str], *, answered: bool) -> Iterator[tuple[Question, list[Span] | None]]:
    for number, row in enumerate(rows, start=1):
        if row.strip():
            entry, place = json_object(path, number, row), f"{path}, line {number}"
            context = _string(entry, "context", place)
            yield _question(context, entry, place), _answers(context, entry, place) if answered else None


def _squad(path: Path, rows: Iterable[str], *, answered: bool) -> Iterator[tuple[Question, list[Span] | None]]:
    try:
        whole = json.loads("\n".join(rows))
    except (ValueError, RecursionError) as error:
        raise TextError(f"{path}: is not JSON ({error})") from None
    for a, article in enumerate(_list(whole, "data", str(path)), start=1):
        place = f"{path}, article {a}"
        for p, paragraph in enumerate(_list(article, "paragraphs", place), start=1):
            place = f"{path}, article {a}, paragraph {p}"
            context = _string(paragraph, "context", place)
            for q, entry in enumerate(_list(paragraph, "qas", place), start=1):
                asked = f"{place}, question {q}"
                found = _question(context, entry, asked)
                asked += f" ({found.id})" if found.id else ""
                yield found, _answers(context, entry, asked) if answered else None


def _list(entry: Any, name: str, place: str) -> list[Any]:
    found = entry.get(name) if isinstance(entry, dict) else None
    if not isinstance(found, list):
        raise TextError(f'{place}: needs "{name}", a list')
    return found


def _string(entry: Any, name: str, place: str) -> str:
    found = entry.get(name) if isinstance(entry, dict) else None
    if not isinstance(found, str):
        raise TextError(f'{place}: needs "{name}", a string')
    return found


def _question(context: str, entry: Any, place: str) -> Question:
    text = _string(entry, "question", place)
    return Question(context, text, str(entry.get("id", "")))


def _answers(context: str, entry: dict[str, Any], place: str) -> list[Span]:
    """The answers to a question. Two lists, of texts and of starts, are accepted too, as some libraries write them."""
    if entry.get("is_impossible") is True:
        return []
    given = entry.get("answers")
    if isinstance(given, dict) and isinstance(given.get("text"), list) and isinstance(given.get("answer_start"), list):
        pairs = zip(given["text"], given["answer_start"], strict=False)
        given = [{"text": text, "answer_start": start} for text, start in pairs]
    if not isinstance(given, list):
        raise TextError(f'{place}: needs "answers", a list; it is empty if the text does not answer the question')
    found = []
    for number, answer in enumerate(given, start=1):
        here = f"{place}, answer {number}"
        text = _string(answer, "text", here)
        start = answer.get("answer_start")
        if not isinstance(start, int) or isinstance(start, bool):
            raise TextError(f'{here}: needs "answer_start", the number of characters before the answer')
        span = Span(start, start + len(text), text)
        problem = problem_of(context, span)
        if problem:
            raise TextError(f"{here}: {problem}")
        found.append(span)
    return found


def problem_of(context: str, answer: Span) -> str:
    """The mistake in an answer; empty if there is none."""
    if not answer.text.strip():
        return "the answer is empty; a question without an answer has an empty list of answers"
    if answer.begin < 0 or answer.end > len(context):
        return (
            f"the answer {answer.text[:40]!r} is at characters {answer.begin} to {answer.end}, outside the context, "
            f"which has {len(context):,}"
        )
    found = context[answer.begin : answer.end]
    if found != answer.text:
        return f"the answer is {answer.text[:40]!r}, but the context has {found[:40]!r} at character {answer.begin}"
    return ""

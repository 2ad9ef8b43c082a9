"""Texts with two marked spans: as a string with marks, or as a text and the places of both spans.

Knows: nothing. Blind to: files, labels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple, cast

from bilmo.errors import TextError
from bilmo.tasks.data.splitting import RawText

MARK = re.compile(r"<(/?)(e[12])>")
NAMES = ("e1", "e2")
Span = tuple[int, int]
"""Start and end, the end not included: characters of a string, or numbers of tokens."""
Related = str | tuple[RawText, Span, Span]
"""What a user gives: a string with marks, or a text and two spans."""


class Marked(NamedTuple):
    """A text without marks, and its two spans."""

    text: RawText
    first: Span
    second: Span


def marked_of(example: Related) -> Marked:
    """A text and its spans, checked."""
    if isinstance(example, str):
        return _parsed(example)
    if not isinstance(example, Sequence) or len(example) != 3:
        raise TextError(
            f"is {example!r:.60}; it must be a string with the marks <e1>...</e1> and <e2>...</e2>, or a text and two "
            "spans: (text, (start, end), (start, end))"
        )
    text = example[0]
    first, second = (_checked(name, span, text) for name, span in zip(NAMES, example[1:], strict=True))
    (_, end), (start, last) = sorted([first, second], key=lambda span: (span[0], -span[1]))
    if start < end < last:
        raise TextError(f"e1 is {list(first)} and e2 is {list(second)}; they cross each other")
    return Marked(text, first, second)


def _parsed(text: str) -> Marked:
    """The spans of a string with marks, white space at their ends left out."""
    places: dict[str, int] = {}
    opened: list[str] = []
    parts: list[str] = []
    end = 0
    for found in MARK.finditer(text):
        closing, name = found.groups()
        if found[0] in places:
            raise TextError(f"the mark {found[0]} occurs twice: {_shown(text)}")
        if closing and name not in opened:
            raise TextError(f"the mark {found[0]} has no <{name}> before it: {_shown(text)}")
        if closing and opened.pop() != name:
            raise TextError(f"the marks of e1 and e2 cross each other: {_shown(text)}")
        if not closing:
            opened.append(name)
        parts.append(text[end : found.start()])
        places[found[0]] = sum(map(len, parts))
        end = found.end()
    for name in NAMES:
        for mark in (f"<{name}>", f"</{name}>"):
            if mark not in places:
                raise TextError(f"the mark {mark} is missing: {_shown(text)}")
    bare = "".join(parts) + text[end:]
    spans = []
    for name in NAMES:
        start, stop = places[f"<{name}>"], places[f"</{name}>"]
        inside = bare[start:stop]
        if not inside.strip():
            raise TextError(f"there is nothing between <{name}> and </{name}>: {_shown(text)}")
        start += len(inside) - len(inside.lstrip())
        spans.append((start, start + len(inside.strip())))
    return Marked(bare, *spans)


def _checked(name: str, span: object, text: RawText) -> Span:
    """A span that lies inside its text."""
    numbers = list(span) if isinstance(span, Sequence) and not isinstance(span, str) else []
    if len(numbers) != 2 or not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        raise TextError(f"{name} is {span!r:.60}; it must be two integers, start and end")
    start, end = cast("tuple[int, int]", tuple(numbers))
    unit = "characters" if isinstance(text, str) else "tokens"
    if not 0 <= start < end <= len(text):
        raise TextError(f"{name} is {numbers}; it must be a part of the text, which has {len(text):,} {unit}")
    if isinstance(text, str) and not text[start:end].strip():
        raise TextError(f"{name} is {numbers}; there is only white space in it")
    return start, end


def with_marks(example: Related) -> str:
    """An example as a string with marks; tokens are joined by spaces."""
    if isinstance(example, str):
        return example
    text, *spans = marked_of(example)
    if not isinstance(text, str):
        starts = [0, *accumulate(len(token) + 1 for token in text)]
        text, spans = " ".join(text), [(starts[start], starts[end] - 1) for start, end in spans]
    # At one place, a span that ends there is closed before another is opened, and the longer one is opened first.
    marks = [(end, 0, -start, f"</{name}>") for name, (start, end) in zip(NAMES, spans, strict=True)]
    marks += [(start, 1, -end, f"<{name}>") for name, (start, end) in zip(NAMES, spans, strict=True)]
    if spans[0] == spans[1]:  # e2 is inside e1
        marks = [(spans[0][1], 0, 0, "</e2></e1>"), (spans[0][0], 1, 0, "<e1><e2>")]
    for place, *_, mark in sorted(marks, reverse=True):
        text = text[:place] + mark + text[place:]
    return text


def token_spans(marked: Marked, tokens: Sequence[str]) -> tuple[Span, Span]:
    """Both spans as numbers of tokens; a token that is partly inside a span belongs to it.

    The tokens of a string, joined, are the string without its white space.
    """
    if not isinstance(marked.text, str):
        return marked.first, marked.second
    visible = [0, *accumulate(not character.isspace() for character in marked.text)]
    ends = list(accumulate(sum(not character.isspace() for character in token) for token in tokens))
    starts = [0, *ends[:-1]]
    found = []
    for start, end in (marked.first, marked.second):
        inside = [k for k in range(len(tokens)) if ends[k] > visible[start] and starts[k] < visible[end]]
        found.append((inside[0], inside[-1] + 1))
    return found[0], found[1]


def _shown(text: str) -> str:
    return repr(text[:80])

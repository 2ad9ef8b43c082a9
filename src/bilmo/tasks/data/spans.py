"""Tags that mark spans (IO, IOB1, BIO, BIOES): reading spans, legal transitions, and converting schemes.

Spans are read exactly as conlleval reads them, so that inconsistent tags count as they do there.

Knows: nothing. Blind to: files, tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

Scheme = Literal["plain", "IO", "IOB1", "BIO", "BIOES"]
"""plain: tags that do not mark spans, such as parts of speech."""
Span = tuple[str, int, int]
"""Type, first token, last token (included)."""
Place = tuple[int, int]
"""Numbers of a sentence and of a token in it, from 0."""
OUTSIDE = "O"


def parts(tag: str) -> tuple[str, str]:
    """B-PER is (B, PER); B alone has no type."""
    prefix, _, kind = tag.partition("-")
    return prefix, kind


def is_span_tag(tag: str) -> bool:
    """Whether a tag could belong to a span scheme."""
    return tag == OUTSIDE or (parts(tag)[0] in ("B", "I", "E", "S") and (tag[1:2] == "-" or len(tag) == 1))


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans that conlleval finds in the tags of one sentence."""
    found = []
    start = -1
    before, kind_before = OUTSIDE, ""
    for k, tag in enumerate([*tags, OUTSIDE]):
        prefix, kind = parts(tag)
        if start >= 0 and _ends(before, prefix, kind_before != kind):
            found.append((kind_before, start, k - 1))
            start = -1
        if _starts(before, prefix, kind_before != kind):
            start = k
        before, kind_before = prefix, kind
    return found


def _ends(before: str, prefix: str, other_kind: bool) -> bool:
    if before == OUTSIDE:
        return False
    return before in ("E", "S") or prefix in ("B", "S", OUTSIDE) or other_kind


def _starts(before: str, prefix: str, other_kind: bool) -> bool:
    if prefix == OUTSIDE:
        return False
    return prefix in ("B", "S") or before in ("E", "S", OUTSIDE) or other_kind


def scheme_of(sentences: Iterable[Sequence[str]]) -> tuple[Scheme, list[Place]]:
    """The scheme that the fewest tags violate, and their places; one tag of no scheme makes the scheme plain."""
    prefixes: set[str] = set()
    wrong: dict[Scheme, list[Place]] = {"BIOES": [], "BIO": [], "IOB1": []}
    for number, tags in enumerate(sentences):
        if not all(map(is_span_tag, tags)):
            return "plain", []
        prefixes.update(parts(tag)[0] for tag in tags)
        for k, (a, b) in enumerate(pairwise([OUTSIDE, *tags, OUTSIDE])):
            (before, kind_before), (prefix, kind) = parts(a), parts(b)
            continues = before != OUTSIDE and kind_before == kind
            place = (number, min(k, len(tags) - 1))  # a span that does not end is noticed after the last token
            if not may_follow(a, b):
                wrong["BIOES"].append(place)
            if prefix in ("E", "S") or (prefix == "I" and not continues):
                wrong["BIO"].append(place)
            if prefix in ("E", "S") or (prefix == "B" and not continues):
                wrong["IOB1"].append(place)
    if not prefixes - {OUTSIDE}:
        return "plain", []
    if prefixes <= {OUTSIDE, "I"}:
        return "IO", []
    if not prefixes & {"E", "S"}:
        del wrong["BIOES"]
    return min(wrong.items(), key=lambda found: len(found[1]))


def may_follow(before: str, tag: str) -> bool:
    """Whether one BIOES tag may follow another; a sentence starts after `O` and ends before `O`."""
    (prefix_before, kind_before), (prefix, kind) = parts(before), parts(tag)
    inside = prefix_before in ("B", "I")  # of a span that has not ended
    continues = prefix in ("I", "E")
    return inside == continues and (not inside or kind_before == kind)


def may_follow_in_bio(before: str, tag: str) -> bool:
    """Whether one BIO tag may follow another, in a scheme in which every span has a type; a sentence starts after `O`.

    >>> may_follow_in_bio("B-A", "I-A"), may_follow_in_bio("O", "I-A"), may_follow_in_bio("I-A", "B-A")
    (True, False, True)
    """
    prefix, kind = parts(tag)
    if prefix == "I":
        return bool(kind) and before in (f"B-{kind}", f"I-{kind}")
    return tag == OUTSIDE or (prefix == "B" and bool(kind))


def write(found: Iterable[Span], length: int, scheme: Scheme) -> list[str]:
    """The tags of a sentence with `length` tokens and these spans."""
    tags = [OUTSIDE] * length
    last = ("", -2)  # type and end of the span before
    for kind, start, end in sorted(found, key=lambda span: span[1]):
        touches = (kind, start - 1) == last
        for k in range(start, end + 1):
            tags[k] = _tag(_prefix(scheme, k == start, k == end, touches), kind)
        last = (kind, end)
    return tags


def _prefix(scheme: Scheme, first: bool, last: bool, touches: bool) -> str:
    if scheme == "BIOES" and last:
        return "S" if first else "E"
    begins = {"IO": False, "IOB1": first and touches}.get(scheme, first)
    return "B" if begins else "I"


def _tag(prefix: str, kind: str) -> str:
    return f"{prefix}-{kind}" if kind else prefix


def bioes_tags(kinds: Iterable[str]) -> list[str]:
    """All BIOES tags of these types of spans."""
    return [OUTSIDE, *(_tag(prefix, kind) for kind in sorted(set(kinds)) for prefix in "BIES")]

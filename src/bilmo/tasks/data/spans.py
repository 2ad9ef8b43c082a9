"""Tags of spans (IO, IOB1, BIO, BIOES): what they say, which may follow which, and one scheme into another.

Spans are read exactly as conlleval reads them, so that broken tags count as it counts them.

Knows: nothing. Blind to: files, tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

Scheme = Literal["plain", "IO", "IOB1", "BIO", "BIOES"]
"""plain: tags that mark no spans, such as parts of speech."""
Span = tuple[str, int, int]
"""Type, first token, last token (included)."""
OUTSIDE = "O"


def parts(tag: str) -> tuple[str, str]:
    """B-PER is (B, PER); B alone has no type."""
    prefix, _, kind = tag.partition("-")
    return prefix, kind


def is_span_tag(tag: str) -> bool:
    """Whether a tag could be one of a span scheme."""
    return tag == OUTSIDE or (parts(tag)[0] in ("B", "I", "E", "S") and (tag[1:2] == "-" or len(tag) == 1))


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans that conlleval finds in the tags of a sentence."""
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


def scheme_of(sentences: Iterable[Sequence[str]]) -> tuple[Scheme, int]:
    """The scheme that tags follow, and how many of them break it; a tag of no scheme makes all of them plain."""
    prefixes: set[str] = set()
    starts_with_i = b_without_need = broken_bioes = 0
    for tags in sentences:
        if not all(map(is_span_tag, tags)):
            return "plain", 0
        prefixes.update(parts(tag)[0] for tag in tags)
        for a, b in pairwise([OUTSIDE, *tags]):
            (before, kind_before), (prefix, kind) = parts(a), parts(b)
            goes_on = before != OUTSIDE and kind_before == kind
            starts_with_i += prefix == "I" and not goes_on
            b_without_need += prefix == "B" and not goes_on
        broken_bioes += sum(not may_follow(a, b) for a, b in pairwise([OUTSIDE, *tags, OUTSIDE]))
    if not prefixes - {OUTSIDE}:
        return "plain", 0
    if prefixes & {"E", "S"}:
        return "BIOES", broken_bioes
    if "B" not in prefixes:
        return "IO", 0
    if starts_with_i and not b_without_need:
        return "IOB1", 0
    return "BIO", starts_with_i


def may_follow(before: str, tag: str) -> bool:
    """Whether one BIOES tag may follow another; a sentence begins after `O` and ends before `O`."""
    (prefix_before, kind_before), (prefix, kind) = parts(before), parts(tag)
    inside = prefix_before in ("B", "I")  # a span has begun and is not over
    goes_on = prefix in ("I", "E")
    return inside == goes_on and (not inside or kind_before == kind)


def write(found: Iterable[Span], length: int, scheme: Scheme) -> list[str]:
    """The tags of a sentence of so many tokens with these spans."""
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
    """All tags that spans of these types can have."""
    return [OUTSIDE, *(_tag(prefix, kind) for kind in sorted(set(kinds)) for prefix in "BIES")]

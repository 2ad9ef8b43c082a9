"""A plain backtracking matcher that counts the characters it reads, for the syntax that `bilmo.text.split` uses.

It tries alternatives and repetitions in the order in which every backtracking engine does, but without the shortcuts
that an engine may know. A test compares its matches with those of `regex`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import regex

Ends = Callable[[int], Iterator[int]]
"""Where a match that starts at a place may end, the preferred end first."""
CLUSTER, FLAGS_BEFORE = regex.compile(r"\X"), regex.compile(r"(?r)\p{RI}*+")
ONE = regex.compile(r"\[\^?(?:\\p\{[^}]*\}|\\u....|\\.|[^\]\\])+\]|\\p\{[^}]*\}|\\u....|\\.|[^()|]", regex.DOTALL)
"""What stands for one character: a set, a property, an escape, the character itself."""
TIMES = regex.compile(r"(?:([*+?])|\{(\d+)(,?)(\d*)\})([+]?)")
VERBOSE_ONLY = regex.compile(r"(?:\s+|#[^\n]*)*+")


@cache
def is_one(what: str, flags: int, character: str) -> bool:
    return regex.fullmatch(what, character, flags) is not None


class Counted:
    """A pattern that counts the characters that it reads."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.read = 0
        self._groups: set[str] = set()
        self._text = ""
        self._source, self._at = pattern.removeprefix("(?i)"), 0
        self._flags = flags | (regex.IGNORECASE if pattern.startswith("(?i)") else 0)
        self._ends = self._alternatives()
        assert self._at == len(self._source), f"not understood: {self._source[self._at :]}"

    # What `regex.Pattern` has

    def match(self, text: str, at: int = 0) -> Match | None:
        self._text = text
        self._groups.clear()
        end = next(self._ends(at), None)
        return None if end is None else Match(text, at, end, frozenset(self._groups))

    def search(self, text: str) -> Match | None:
        return next(self.finditer(text), None)

    def finditer(self, text: str) -> Iterator[Match]:
        at = 0
        while at <= len(text):
            found = self.match(text, at)
            if found:
                yield found
            at = found.last if found and found.last > at else at + 1

    def findall(self, text: str) -> list[str | None]:
        return [found[0] for found in self.finditer(text)]

    # The syntax

    def _next(self) -> str:
        """What comes next in the pattern; white space and comments of a verbose pattern are skipped."""
        if self._flags & regex.VERBOSE:
            self._at = VERBOSE_ONLY.match(self._source, self._at).end()
        return self._source[self._at :]

    def _alternatives(self) -> Ends:
        branches = [self._sequence()]
        while self._next().startswith("|"):
            self._at += 1
            branches.append(self._sequence())

        def ends(at: int) -> Iterator[int]:
            for branch in branches:
                yield from branch(at)

        return ends

    def _sequence(self) -> Ends:
        parts = []
        while (rest := self._next()) and rest[0] not in "|)":
            parts.append(self._repeated(self._atom(rest)))

        def ends(at: int) -> Iterator[int]:
            trail = [parts[0](at)]
            while trail:
                end = next(trail[-1], None)
                if end is None:
                    trail.pop()
                elif len(trail) == len(parts):
                    yield end
                else:
                    trail.append(parts[len(trail)](end))

        return ends

    def _atom(self, rest: str) -> Ends:
        for opening, made in (("(?:", self._plain), ("(?<=", self._behind), ("(?P<", self._named), ("(", self._plain)):
            if rest.startswith(opening):
                name = rest[len(opening) : rest.index(">")] if opening == "(?P<" else ""
                self._at += len(opening) + (len(name) + 1 if name else 0)
                inside = self._alternatives()
                assert self._next().startswith(")")
                self._at += 1
                return made(inside, name)
        one = ONE.match(rest)[0]
        self._at += len(one)
        if one in ("$", r"\X"):
            return self._end if one == "$" else self._cluster
        flags = self._flags & regex.IGNORECASE
        what = regex.escape(one) if len(one) == 1 and one != "." else one

        def ends(at: int) -> Iterator[int]:
            self.read += 1
            if at < len(self._text) and is_one(what, flags, self._text[at]):
                yield at + 1

        return ends

    def _plain(self, inside: Ends, name: str) -> Ends:
        return inside

    def _named(self, inside: Ends, name: str) -> Ends:
        def ends(at: int) -> Iterator[int]:
            for end in inside(at):
                self._groups.add(name)
                yield end

        return ends

    def _behind(self, inside: Ends, name: str) -> Ends:
        """Only one character is ever looked for before a place."""
        return lambda at: iter([at] if at and next(inside(at - 1), None) == at else [])

    def _end(self, at: int) -> Iterator[int]:
        self.read += 1
        if self._text[at:] in ("", "\n"):
            yield at

    def _cluster(self, at: int) -> Iterator[int]:
        """`regex` itself finds the end. It reads the cluster, and before it all flags, which it counts."""
        found = CLUSTER.match(self._text, at)
        if found:
            before = len(FLAGS_BEFORE.match(self._text, pos=0, endpos=at)[0])
            self.read += found.end() - at + before
            yield found.end()

    def _repeated(self, atom: Ends) -> Ends:
        times = TIMES.match(self._next())
        if not times:
            return atom
        self._at += len(times[0])
        sign, low, comma, high, possessive = times.groups()
        least = {"*": 0, "?": 0, "+": 1}[sign] if sign else int(low)
        most = {"*": None, "?": 1, "+": None}.get(sign) if sign else (int(high) if high else None if comma else least)

        def ends(at: int) -> Iterator[int]:
            trail: list[Iterator[int]] = []
            places = [at]
            while True:  # as often as possible; then, when asked again, less often
                if most is None or len(trail) < most:
                    trail.append(atom(places[-1]))
                    end = next(trail[-1], None)
                    if end is not None:
                        places.append(end)
                        continue
                    trail.pop()
                while True:
                    if len(trail) >= least:
                        yield places[-1]
                        if possessive:
                            return
                    if not trail:
                        return
                    places.pop()
                    end = next(trail[-1], None)
                    if end is not None:
                        places.append(end)
                        break
                    trail.pop()

        return ends


class Match:
    """The part of `regex.Match` that is used."""

    def __init__(self, text: str, first: int, last: int, groups: frozenset[str]) -> None:
        self._text, self._first, self.last, self._groups = text, first, last, groups

    def start(self) -> int:
        return self._first

    def end(self) -> int:
        return self.last

    def span(self) -> tuple[int, int]:
        return self._first, self.last

    def __getitem__(self, group: int | str) -> str | None:
        """The whole match; or a named group, which is the whole match wherever it is used."""
        return self._text[self._first : self.last] if group == 0 or group in self._groups else None

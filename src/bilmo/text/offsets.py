"""Where tokens stand in the text that they were split from.

Knows: nothing. Blind to: how text is split.
"""

from __future__ import annotations

from collections.abc import Iterable


def offsets(text: str, tokens: Iterable[str]) -> list[tuple[int, int]]:
    """(begin, end) of each token in characters, so that `text[begin:end]` is the token.

    The tokens must be those of the whole text in their order: between them there is only white space.

    >>> offsets("Don't  go.", ["Do", "n't", "go", "."])
    [(0, 2), (2, 5), (7, 9), (9, 10)]
    """
    found = []
    at = 0
    for token in tokens:
        while not text.startswith(token, at):
            if at >= len(text) or not text[at].isspace():
                raise ValueError(
                    f"{token!r} does not follow at character {at} of the text; found {text[at : at + 20]!r}"
                )
            at += 1
        found.append((at, at + len(token)))
        at += len(token)
    return found

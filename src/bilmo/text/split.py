"""A line of text as a sentence: a list of tokens.

Knows: nothing. Blind to: files, ids.
"""

from __future__ import annotations


def by_spaces(line: str) -> list[str]:
    """Tokens of a line that is split already: white space of any kind stands between them.

    >>> by_spaces("The cat sat .")
    ['The', 'cat', 'sat', '.']
    """
    return line.split()

"""Traditional Chinese characters to simplified ones, one by one, so that a copy of a text has the same length.

Knows: opencc. Blind to: words.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import regex

HAN = regex.compile(r"\p{Han}")
KEPT = frozenset("乾吒夥徵拚捱摺榘菸薹袷醣麴麽")
"""Characters that simplified text has too, as in 乾坤 and 哪吒; they stay as they are."""


def simplified(text: str) -> str:
    """The same text with the simplified form of every character that has one.

    >>> simplified("話說天下大勢")
    '话说天下大势'
    """
    return text.translate(_TABLE)


class _Table(dict[int, int]):
    """Code points and those of the simplified characters, filled as characters are met."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        changes = HAN.match(character) and character not in KEPT
        self[code] = found = ord(_convert()(character)) if changes else code
        return found


_TABLE = _Table()


@cache
def _convert() -> Callable[[str], str]:
    import opencc  # imported only for Chinese

    convert: Callable[[str], str] = opencc.OpenCC("t2s").convert
    return convert

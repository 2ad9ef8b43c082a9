"""Target text to tokens and back, without loss.

The splitter drops spaces. In languages that write them, a mark on a token says where there is none: `(word)` becomes
`(+`, `word`, `+)`, where + is the mark. The mark is on the token that is not a word, so that words stay the same
everywhere, and can be copied from the source.

Knows: splitters. Blind to: vocabularies, networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import regex

from bilmo.generate.data.subwords import Subwords
from bilmo.tasks.data.splitting import RawText, task_splitter
from bilmo.text.offsets import offsets
from bilmo.text.split import Splitter

JOIN = "\u2060"
"""The mark: Unicode's word joiner, which is invisible, and removed from given text."""
SPACED = ("en", "west")
"""Rules for languages that write spaces between words."""
WORD = regex.compile(r"[\p{L}\p{M}\p{N}]")
WIDE = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{P}\p{S}]")


@dataclass(frozen=True)
class TargetText:
    """Text of a language as tokens that a decoder writes."""

    lang: str
    """The name of the splitter."""
    dictionary: tuple[str, ...] = ()
    subwords: str = ""
    """Learned subwords, as JSON; empty where tokens are words."""

    @cached_property
    def _subwords(self) -> Subwords | None:
        return Subwords(self.subwords) if self.subwords else None

    @cached_property
    def _split(self) -> Splitter:
        return task_splitter(self.lang, self.dictionary)

    def tokens(self, text: RawText) -> list[str]:
        """Text to tokens.

        >>> TargetText("en").text(TargetText("en").tokens('"Well-known" (I think): it cannot be, can it?'))
        '"Well-known" (I think): it cannot be, can it?'
        """
        if self._subwords is not None:
            return self._subwords.tokens(text if isinstance(text, str) else " ".join(text))
        if not isinstance(text, str):
            return list(text)
        lines = text.replace(JOIN, "").split("\n")
        return [token for line in lines for token in self._line(line)]

    def _line(self, line: str) -> list[str]:
        tokens = [token for sentence in self._split(line) for token in sentence]
        return marked(line, tokens) if self.lang in SPACED else tokens

    def copies(self, text: RawText, sentences: Sequence[Sequence[str]], lang: str) -> list[str]:
        """The tokens of a source in the form of target tokens, so that they can be copied.

        sentences: its tokens, which were split by the rules `lang`.
        """
        tokens = [token for sentence in sentences for token in sentence]
        if not isinstance(text, str) or self.lang not in SPACED or lang not in SPACED:
            return tokens
        return marked(text, tokens)

    def text(self, tokens: Sequence[str]) -> str:
        """Tokens to text."""
        if self._subwords is not None:
            return self._subwords.text(tokens)
        if self.lang == "zh":
            parts = [" " + token if k and not _touch(tokens[k - 1], token) else token for k, token in enumerate(tokens)]
            return "".join(parts)
        return " ".join(tokens).replace(f" {JOIN}", "").replace(f"{JOIN} ", "").replace(JOIN, "")


def marked(text: str, tokens: Sequence[str]) -> list[str]:
    """Tokens with marks where the text has no space between them; the tokens may be the first ones of the text."""
    found = list(tokens)
    places = offsets(text, tokens)
    for k in range(1, len(found)):
        if places[k - 1][1] == places[k][0]:
            if WORD.search(tokens[k]) and not WORD.search(tokens[k - 1]):
                found[k - 1] += JOIN
            else:
                found[k] = JOIN + found[k]
    return found


def _touch(before: str, after: str) -> bool:
    """Whether Chinese text has no space between two tokens: only two words of another script have one."""
    return bool(not before or not after or WIDE.match(before[-1]) or WIDE.match(after[0]))

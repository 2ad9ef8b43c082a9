"""Raw text to sentences, each a list of tokens: western rules, Chinese words, or what is split already.

Nothing is lost and nothing is changed: the tokens of a text, joined, are the text without its white space.

Knows: regex, rjieba. Blind to: files, ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain, islice
from typing import Literal

import regex

from bilmo.errors import TextError

Split = Literal["spaces", "en", "west", "zh"]
"""How text becomes tokens: at spaces, by English rules, by those of any language with spaces, or as Chinese."""
Splitter = Callable[[str], list[list[str]]]
"""A line of text to its sentences."""

SAMPLE = 2000
"""Lines that are looked at to find out how a text wants to be split."""


def splitter(how: str) -> Splitter:
    """The splitter of that name.

    >>> splitter("en")("He didn't go. She did!")
    [['He', 'did', "n't", 'go', '.'], ['She', 'did', '!']]
    """
    known: dict[str, Splitter] = {"spaces": at_spaces, "en": english, "west": western, "zh": chinese}
    if how not in known:
        raise TextError(f"split is {how!r}; known are auto, {', '.join(known)}")
    return known[how]


def at_spaces(line: str) -> list[list[str]]:
    """One sentence: the line was split before, and white space of any kind stands between its tokens."""
    tokens = line.split()
    return [tokens] if tokens else []


WORD = r"[\p{L}\p{M}\p{N}]"
TOKEN = regex.compile(
    rf"""
    (?:https?://|www\.)[^\s<>"]*[\p{{L}}\p{{N}}/]                  # an address on the web
  | {WORD}+(?:[.+_-]{WORD}+)*@{WORD}+(?:[.-]{WORD}+)+              # an address for mail
  | (?:\p{{L}}\.){{2,}}                                            # U.S., e.g.
  | {WORD}+(?:[-'’_&]{WORD}+|(?<=\p{{N}})[.,:/]\p{{N}}+)*          # words, numbers, well-known, 3.14
  | \.{{2,}} | …+ | -{{2,}}                                        # dots and dashes stay together
  | \s+                                                            # or an accent would join the space before it
  | \X                                                             # anything else: one character as a reader sees it
    """,
    regex.VERBOSE,
)
ABBREVIATIONS = frozenset(
    "Mr Mrs Ms Dr Prof St Sr Jr Rev Hon Gen Col Capt Lt Sgt Maj Gov Sen Rep Messrs Mme Mlle Esq Mt Ft Vol Fig Co "
    "Corp Inc Ltd Bros vs etc cf al approx Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec".split()
)
CLITIC = regex.compile(r"(?i)(?<=\p{L})(n['’]t|['’](?:s|re|ve|ll|d|m))$")
ENDS = frozenset(".!?…") | {"..", "...", "...."}
CLOSERS = frozenset("\"'”’»)]}›")
OPENERS = regex.compile(r"[\p{Lu}\p{Lt}\p{Lo}\p{N}\"'“‘«(\[{¿¡—–-]")


def western(line: str) -> list[list[str]]:
    """Words and sentences of a language that puts spaces between its words."""
    return list(_sentences(_tokens(line)))


def english(line: str) -> list[list[str]]:
    """The same, with do|n't and he|'s in two, as English text is usually prepared."""
    return [[part for token in sentence for part in _without_clitic(token)] for sentence in western(line)]


def _tokens(line: str) -> Iterator[tuple[str, bool]]:
    """Tokens, and whether white space stands before each; a full stop that belongs to a word stays with it."""
    end, held, spaced = -1, "", False
    for match in TOKEN.finditer(line):
        token = match[0]
        if token.isspace():
            continue
        if held and token == "." and match.start() == end:
            token, held = held + ".", ""
        else:
            if held:
                yield held, spaced
            spaced = match.start() != end
        end = match.end()
        held = token if _is_abbreviation(token) else ""
        if not held:
            yield token, spaced
    if held:
        yield held, spaced


def _is_abbreviation(token: str) -> bool:
    return token in ABBREVIATIONS or (len(token) == 1 and token.isupper() and token != "I")


def _sentences(tokens: Iterable[tuple[str, bool]]) -> Iterator[list[str]]:
    sentence: list[str] = []
    ended = False
    for token, spaced in tokens:
        # After an end mark: what closes belongs to the sentence, what can open one begins the next.
        if ended and not (token in CLOSERS and not spaced) and token not in ENDS:
            if spaced and OPENERS.match(token):
                yield sentence
                sentence = []
            ended = False
        sentence.append(token)
        ended = ended or token in ENDS
    if sentence:
        yield sentence


def _without_clitic(token: str) -> list[str]:
    found = CLITIC.search(token)
    return [token[: found.start()], found[0]] if found and found.start() else [token]


CHINESE_ENDS = frozenset("。！？!?．…；;")
CHINESE_CLOSERS = frozenset("”’」』）》】\"')")
RUN = regex.compile(r"\p{Han}+|[^\p{Han}]+")


def chinese(line: str) -> list[list[str]]:
    """Words by rjieba, sentences by their end marks; stretches in other scripts by western rules."""
    cut = _chinese_words()
    sentences: list[list[str]] = []
    sentence: list[str] = []
    ended = False
    for run in RUN.findall(line):
        tokens = cut(run) if regex.match(r"\p{Han}", run) else [token for token, _ in _tokens(run)]
        for token in tokens:
            if ended and token not in CHINESE_CLOSERS and token[0] not in CHINESE_ENDS:
                sentences.append(sentence)
                sentence, ended = [], False
            sentence.append(token)
            ended = ended or token[0] in CHINESE_ENDS
    return [*sentences, sentence] if sentence else sentences


@cache
def _chinese_words() -> Callable[[str], list[str]]:
    import rjieba  # takes a moment to load its dictionary, so only where there is Chinese

    cut: Callable[[str], list[str]] = rjieba.cut
    return cut


ENGLISH = frozenset("the of and to a in that he was it his is with as i for on not had be at by".split())


def detect(lines: Iterable[str]) -> Split:
    """How a text wants to be split, from its first lines.

    Spaces before full stops, or short stretches of Chinese between spaces, say that it was split before.
    """
    sample = list(islice((line for line in lines if line.strip()), SAMPLE))
    text = "\n".join(sample)
    han = len(regex.findall(r"\p{Han}", text))
    letters = len(regex.findall(r"\p{L}", text))
    if han * 5 > letters:
        runs = regex.findall(r"\p{Han}+", text)
        return "spaces" if han < 3 * len(runs) and text.count(" ") > len(sample) else "zh"
    apart, all_marks = len(regex.findall(r"\s[.,;:!?](?:\s|$)", text)), len(regex.findall(r"[.,;:!?](?:\s|$)", text))
    if all_marks and apart * 2 > all_marks:
        return "spaces"
    words = [word.lower() for word in regex.findall(r"\p{L}+", text)]
    return "en" if sum(word in ENGLISH for word in words) * 8 > len(words) else "west"


def told_or_detected(lines: Iterable[str], how: str) -> tuple[str, Iterator[str]]:
    """How to split a text, `how` or for "auto" what its first lines say; and all its lines that are not blank.

    The text is read once, for it may come through a pipe.
    """
    rest = (line for line in lines if line.strip())
    if how != "auto":
        return how, rest
    first = list(islice(rest, SAMPLE))
    return detect(first), chain(first, rest)

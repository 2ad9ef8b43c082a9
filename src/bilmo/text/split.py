"""Raw text to sentences, each a list of tokens: by Western rules, as Chinese, or at spaces for tokenized text.

Nothing is lost or changed: the tokens of a text, joined, are the text without its white space.

Knows: regex, rjieba, dictionaries. Blind to: files, ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import chain, islice
from typing import Literal

import regex

from bilmo.errors import TextError
from bilmo.text.dictionary import Dictionary
from bilmo.text.simplified import simplified

Lang = Literal["spaces", "en", "west", "zh"]
"""How text is split: at spaces, by English rules, by rules for any language with spaces, or as Chinese."""
Splitter = Callable[[str], list[list[str]]]
"""A function from a line of text to its sentences."""

SAMPLE = 2000
"""Number of lines from which the way to split is detected."""


def splitter(how: str, dictionary: Dictionary | None = None) -> Splitter:
    """The splitter of that name; only "zh" uses the dictionary.

    >>> splitter("en")("He didn't go. She did!")
    [['He', 'did', "n't", 'go', '.'], ['She', 'did', '!']]
    """
    known: dict[str, Splitter] = {
        "spaces": at_spaces,
        "en": english,
        "west": western,
        "zh": partial(chinese, dictionary=dictionary),
    }
    if how not in known:
        raise TextError(f"lang is {how!r}; accepted: auto, {', '.join(known)}")
    return known[how]


def at_spaces(line: str) -> list[list[str]]:
    """One sentence whose tokens are separated by white space of any kind."""
    tokens = line.split()
    return [tokens] if tokens else []


WORD = r"[\p{L}\p{M}\p{N}]"
TOKEN = regex.compile(
    rf"""
    (?:https?://|www\.)[^\s<>"]*[\p{{L}}\p{{N}}/]                  # a web address
  | (?P<word>
      (?:\p{{L}}\.){{2,}}                                          # U.S., e.g.
    | {WORD}++(?:[-'’_&]{WORD}++|(?<=\p{{N}})[.,:/]\p{{N}}++)*+    # words, numbers, well-known, 3.14
    )
  | \.{{2,}} | …+ | -{{2,}}                                        # dots and dashes stay together
  | \s+                                                            # else an accent would join the space before it
  | \p{{RI}}{{1,2}}[\p{{GCB=Extend}}\p{{GCB=SpacingMark}}\u200d]*  # a flag; \X would count all flags before it
  | \X                                                             # anything else: one character as readers see it
    """,
    regex.VERBOSE,
)
LOCAL_PART = regex.compile(rf"{WORD}++(?:[.+_-]{WORD}++)*+")
DOMAIN = regex.compile(rf"@{WORD}++(?:[.-]{WORD}++)++")
"""The two parts of an e-mail address. TOKEN does not have them: it would read a long text such as ab.ab.ab to its end
at each of its words, in search of an "@"."""
ABBREVIATIONS = frozenset(
    "Mr Mrs Ms Dr Prof St Sr Jr Rev Hon Gen Col Capt Lt Sgt Maj Gov Sen Rep Messrs Mme Mlle Esq Mt Ft Vol Fig Co "
    "Corp Inc Ltd Bros vs etc cf al approx Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec".split()
)
CLITIC = regex.compile(r"(?i)(?<=\p{L})(n['’]t|['’](?:s|re|ve|ll|d|m))$")
ENDS = frozenset(".!?…") | {"..", "...", "...."}
CLOSERS = frozenset("\"'”’»)]}›")
OPENERS = regex.compile(r"[\p{Lu}\p{Lt}\p{Lo}\p{N}\"'“‘«(\[{¿¡—–-]")


def western(line: str) -> list[list[str]]:
    """Split a line of a language that writes spaces between words."""
    return list(_sentences(_tokens(line)))


def english(line: str) -> list[list[str]]:
    """Split as `western` does, and split do|n't and he|'s in two, as is usual for English."""
    return [[part for token in sentence for part in _without_clitic(token)] for sentence in western(line)]


def _tokens(line: str) -> Iterator[tuple[str, bool]]:
    """Tokens, and whether white space precedes each; the full stop of an abbreviation stays with it."""
    before, held, spaced = -1, "", False
    for start, end in _spans(line):
        token = line[start:end]
        if token.isspace():
            continue
        if held and token == "." and start == before:
            token, held = held + ".", ""
        else:
            if held:
                yield held, spaced
            spaced = start != before
        before = end
        held = token if _is_abbreviation(token) else ""
        if not held:
            yield token, spaced
    if held:
        yield held, spaced


def _spans(line: str) -> Iterator[tuple[int, int]]:
    """Where each token starts and ends, white space included. Each character is read a few times at most."""
    if "@" not in line:
        yield from (found.span() for found in TOKEN.finditer(line))
        return
    start = local_end = address_end = 0
    while start < len(line):
        found = TOKEN.match(line, start)
        end = found.end()
        if found["word"] is not None:  # an e-mail address starts like a word
            if start >= local_end:  # else this word is in the local part that was read last
                local_end = LOCAL_PART.match(line, start).end()
                domain = DOMAIN.match(line, local_end)
                address_end = domain.end() if domain else 0
            end = address_end or end
        yield start, end
        start = end


def _is_abbreviation(token: str) -> bool:
    return token in ABBREVIATIONS or (len(token) == 1 and token.isupper() and token != "I")


def _sentences(tokens: Iterable[tuple[str, bool]]) -> Iterator[list[str]]:
    sentence: list[str] = []
    ended = False
    for token, spaced in tokens:
        # After an end mark, a closing mark still belongs to the sentence; a token that can open one starts the next.
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
HAN = regex.compile(r"\p{Han}")
RUN = regex.compile(r"\p{Han}+|[^\p{Han}]+")


def chinese(line: str, dictionary: Dictionary | None = None) -> list[list[str]]:
    """Split words by rjieba and sentences at end marks; text in other scripts is split by Western rules.

    Words of the dictionary are always tokens.
    """
    sentences: list[list[str]] = []
    sentence: list[str] = []
    ended = False
    for token in _chinese_tokens(line, dictionary):
        if ended and token not in CHINESE_CLOSERS and token[0] not in CHINESE_ENDS:
            sentences.append(sentence)
            sentence, ended = [], False
        sentence.append(token)
        ended = ended or token[0] in CHINESE_ENDS
    return [*sentences, sentence] if sentence else sentences


def _chinese_tokens(line: str, dictionary: Dictionary | None) -> Iterator[str]:
    """Tokens, found in a simplified copy of the line, because rjieba knows few words in traditional characters."""
    plain = simplified(line)
    after = 0
    for begin, end in dictionary.spans(plain) if dictionary else ():
        yield from _unlisted(line[after:begin], plain[after:begin])
        yield line[begin:end]
        after = end
    yield from _unlisted(line[after:], plain[after:])


def _unlisted(text: str, plain: str) -> Iterator[str]:
    """The tokens of a text without words of the dictionary; `plain` is its simplified copy."""
    cut = _chinese_words()
    for run in RUN.finditer(plain):
        at = run.start()
        if not HAN.match(plain, at):
            yield from (token for token, _ in _tokens(run[0]))
            continue
        for word in cut(run[0]):
            yield text[at : at + len(word)]
            at += len(word)


@cache
def _chinese_words() -> Callable[[str], list[str]]:
    import rjieba  # imported only for Chinese, because loading its dictionary takes a moment

    cut: Callable[[str], list[str]] = rjieba.cut
    return cut


ENGLISH = frozenset("the of and to a in that he was it his is with as i for on not had be at by".split())


def detect(lines: Iterable[str]) -> Lang:
    """Detect how to split a text, from its first lines.

    Spaces before punctuation, or short runs of Chinese between spaces, mean that the text is already tokenized.
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


def choose_split(lines: Iterable[str], lang: str) -> tuple[str, Iterator[str]]:
    """`lang`, or the way detected from the first lines if it is "auto"; and all lines that are not blank.

    The text is read once, because it may come through a pipe.
    """
    rest = (line for line in lines if line.strip())
    if lang != "auto":
        return lang, rest
    first = list(islice(rest, SAMPLE))
    return detect(first), chain(first, rest)

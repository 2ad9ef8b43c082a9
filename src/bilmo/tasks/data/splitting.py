"""How raw text is split into tokens: as asked for, or, for "auto", as the biLM's text was or as detected.

Knows: splitters, dictionaries. Blind to: tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from bilmo.ids.batch import Sentence, listed
from bilmo.text import dictionary as dictionaries
from bilmo.text.dictionary import Dictionary
from bilmo.text.split import SAMPLE, Splitter, detect, splitter

RawText = str | Sequence[str]
"""A text, or its tokens where it is split already."""


@dataclass(frozen=True)
class ModelSplit:
    """How the training text of a biLM was split."""

    lang: str = ""
    """The name of the rules; empty where that is unknown."""
    dictionary: tuple[str, ...] = ()
    """Words that the Chinese rules keep whole."""


def choose_task_split(asked: str, lines: Iterable[str], model_split: str) -> str:
    """The name of the splitter for some lines.

    For "auto", text that is split already stays as it is. Other text is split as the biLM's training text was, so that
    it finds the words that the biLM knows; where that is unknown, by the rules that fit the text.
    """
    if asked != "auto":
        splitter(asked)  # an unknown name is an error
        return asked
    found = detect(lines)
    return model_split if model_split and found != "spaces" else found


def choose_task_dictionary(path: str | None, lang: str, model: ModelSplit) -> tuple[str, ...]:
    """The words of the dictionary that a task keeps: those of a file, or those of the biLM.

    lang: how text is split; "auto" where that is not known yet.
    """
    if path is not None:
        dictionaries.check_lang(lang)
        return dictionaries.read(Path(path)).words
    return model.dictionary if lang in ("auto", "zh") else ()


def task_splitter(lang: str, dictionary: tuple[str, ...]) -> Splitter:
    """The splitter of a task, with the words of its dictionary."""
    return splitter(lang, Dictionary(dictionary) if dictionary else None)


def split_lines(
    rows: Iterable[str], asked: str, model_split: str, dictionary: tuple[str, ...]
) -> tuple[str, Iterator[list[str]]]:
    """The name of the splitter for lines of raw text, and their sentences.

    A line without tokens is a sentence too, so that the numbers of sentences match the lines.
    """
    rest = iter(rows)
    first = list(islice(rest, SAMPLE))
    lang = choose_task_split(asked, first, model_split)
    split = task_splitter(lang, dictionary)
    return lang, (sentence for line in chain(first, rest) for sentence in split(line) or [[]])


def choose_text_split(asked: str, texts: Iterable[RawText], model_split: str) -> str:
    """The name of the splitter for the strings among some texts.

    Where all of them are tokens, strings are expected to be split already.
    """
    strings = [text for text in texts if isinstance(text, str)]
    lang = choose_task_split(asked, (line for text in strings for line in text.split("\n")), model_split)
    return "spaces" if asked == "auto" and not strings else lang


def split_texts(texts: Sequence[RawText], lang: str, dictionary: tuple[str, ...]) -> list[list[Sentence]]:
    """The sentences of each text. Strings are split; tokens are one sentence."""
    split = task_splitter(lang, dictionary)
    tokens = iter(listed([text for text in texts if not isinstance(text, str)]))
    found: list[list[Sentence]] = []
    for text in texts:
        if isinstance(text, str):
            sentences: list[Sentence] = [sentence for line in text.split("\n") for sentence in split(line)]
        else:
            sentences = [list(next(tokens))]
        found.append([sentence for sentence in sentences if sentence])
    return found

"""How raw text is split into tokens: as asked for, or, for "auto", as the biLM's text was or as detected.

Knows: splitters, dictionaries. Blind to: tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bilmo.text import dictionary as dictionaries
from bilmo.text.dictionary import Dictionary
from bilmo.text.split import Splitter, detect, splitter


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

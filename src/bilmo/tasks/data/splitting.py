"""How raw text is split into tokens: as asked for, or, for "auto", as the biLM's text was or as detected.

Knows: splitters. Blind to: tasks, files.
"""

from __future__ import annotations

from collections.abc import Iterable

from bilmo.text.split import detect, splitter


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

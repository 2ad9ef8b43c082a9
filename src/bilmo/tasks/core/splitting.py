"""How the raw text of a task is split: as asked for, or for "auto" as the biLM and the text itself say.

Knows: model cards, splitters. Blind to: tasks, files.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from bilmo.embed.embedder import Embedder
from bilmo.store.card import fact_in
from bilmo.text.split import Split, detect, splitter

RULES = [how for how in get_args(Split) if how != "spaces"]


def of_model(elmo: Embedder | None) -> str:
    """The rules by which the text of a biLM was split; empty where its card does not say, or it came split."""
    said = fact_in(elmo.bundle.card, "split") if elmo is not None else ""
    return said if said in RULES else ""


def chosen(asked: str, lines: Iterable[str], rules: str) -> str:
    """How lines are split.

    For "auto", text that was split before stays as it is; other text is split by the rules of the biLM, so that it
    meets the words that it knows, and where they are not known as the text looks.
    """
    if asked != "auto":
        splitter(asked)  # must be known
        return asked
    found = detect(lines)
    return rules if rules and found != "spaces" else found

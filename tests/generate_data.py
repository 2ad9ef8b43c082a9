"""Synthetic pairs that tasks which write can learn."""

from __future__ import annotations

import random

GERMAN = {
    "the": "der",
    "a": "ein",
    "cat": "Kater",
    "dog": "Hund",
    "cow": "Ochse",
    "red": "rote",
    "blue": "blaue",
    "saw": "sah",
    "fed": "fütterte",
}


def sentences(number: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Sentences, and word by word their translations, with the verb after both animals; numbers are copied."""
    draw = random.Random(seed)
    sources, targets = [], []
    for k in range(number):
        who, whom = (
            [draw.choice(["the", "a"]), draw.choice(["red", "blue"]), draw.choice(["cat", "dog", "cow"])] for _ in "ab"
        )
        verb = draw.choice(["saw", "fed"])
        sources.append(" ".join([*who, verb, *whom]) + f" {k}.")
        targets.append(" ".join(GERMAN[word] for word in [*who, *whom, verb]) + f" {k}.")
    return sources, targets


def sequences(number: int, seed: int, *, reverse: bool) -> tuple[list[list[str]], list[list[str]]]:
    """Letters, and the same in the same or the other order."""
    draw = random.Random(seed)
    found = [[draw.choice("abcdefgh") for _ in range(draw.randint(1, 6))] for _ in range(number)]
    return found, [row[::-1] if reverse else row for row in found]


def news(number: int, seed: int = 0) -> tuple[list[list[str]], list[str]]:
    """Paragraphs, and a headline that has a name of the second sentence and what the first one says."""
    draw = random.Random(seed)
    texts, titles = [], []
    for k in range(number):
        animal, colour = draw.choice(["cat", "dog", "cow"]), draw.choice(["red", "blue"])
        texts.append([f"Today a {colour} {animal} was found. Its name is Name{k}.", "Nobody knows more."])
        titles.append(f"Name{k}, a {animal}, found")
    return texts, titles

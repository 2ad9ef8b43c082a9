"""A tiny model, and synthetic data that tasks can learn."""

from __future__ import annotations

import random

import torch

import bilmo
from bilmo.embed.loaded import settled
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.store.bundle import Bundle

COLOURS, ANIMALS, REST = ("red", "green", "blue"), ("cat", "dog", "cow"), ("the", "a", "saw", "and", "then", ".")


def made(seed: int) -> Bundle:
    torch.manual_seed(seed)
    config = bilmo.BiLMConfig(
        words=WordsConfig(chars=CharsConfig(width=4, filters=((1, 8), (2, 16)), highways=0)),
        cell=CellConfig(cells=12),
        width=8,
    )
    network = bilmo.BiLM(config)
    with torch.no_grad():  # larger than before training, so that vectors of words differ clearly
        for parameter in network.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4)
    return settled(Bundle(config, network.state_dict(), layout="made for a test"))


def texts(number: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Texts about colours or about animals."""
    draw = random.Random(seed)
    found = []
    for k in range(number):
        words = draw.choices(COLOURS if k % 2 else ANIMALS, k=2) + draw.choices(REST, k=draw.randint(1, 5))
        draw.shuffle(words)
        found.append((" ".join(words), "colour" if k % 2 else "animal"))
    return [text for text, _ in found], [label for _, label in found]


def sentences(number: int, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    """Animals, with the colours before them, are spans in BIO."""
    draw = random.Random(seed)
    tokens, tags = [], []
    for _ in range(number):
        sentence: list[str] = []
        marks: list[str] = []
        for _ in range(draw.randint(1, 3)):
            other = draw.choices(REST, k=draw.randint(0, 2))
            span = [*draw.choices(COLOURS, k=draw.randint(0, 2)), draw.choice(ANIMALS)]
            kind = "PET" if span[-1] != "cow" else "FARM"
            sentence += [*other, *span]
            marks += ["O"] * len(other) + [f"B-{kind}"] + [f"I-{kind}"] * (len(span) - 1)
        tokens.append(sentence)
        tags.append(marks)
    return tokens, tags

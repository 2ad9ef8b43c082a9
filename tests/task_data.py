"""A tiny model, and synthetic data that tasks can learn."""

from __future__ import annotations

import random

import torch

import bilmo
from bilmo.embed.loaded import settled
from bilmo.net.config import CellConfig, CharsConfig, WordsConfig
from bilmo.store.bundle import Bundle
from bilmo.tasks.data.frames import Frame
from bilmo.tasks.data.squad import Question, Span

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


def pairs(number: int, seed: int = 0) -> tuple[list[tuple[str, str]], list[str]]:
    """The second text has the animal of the first, another one, or none."""
    draw = random.Random(seed)
    found, labels = [], []
    for k in range(number):
        label = ("entailment", "contradiction", "neutral")[k % 3]
        animal, other = draw.sample(ANIMALS, 2)
        said = {"entailment": [animal], "contradiction": [other], "neutral": [draw.choice(COLOURS)]}[label]
        texts = ([animal, *draw.choices(REST, k=draw.randint(1, 4))], said + draw.choices(REST, k=draw.randint(0, 3)))
        for words in texts:
            draw.shuffle(words)
        found.append((" ".join(texts[0]), " ".join(texts[1])))
        labels.append(label)
    return found, labels


def documents(number: int, seed: int = 0) -> tuple[list[list[list[str]]], list[list[list[tuple[int, int]]]]]:
    """Stories: all mentions of the same animal, with the article before it, are a cluster."""
    draw = random.Random(seed)
    found, answers = [], []
    for _ in range(number):
        story: list[list[str]] = []
        clusters: dict[str, list[tuple[int, int]]] = {}
        at = 0
        for _ in range(draw.randint(2, 4)):
            first, second = draw.choices(ANIMALS, k=2)
            sentence = [draw.choice(("the", "a")), first, "saw", draw.choice(("the", "a")), second, "then", "."]
            clusters.setdefault(first, []).append((at, at + 1))
            clusters.setdefault(second, []).append((at + 3, at + 4))
            story.append(sentence)
            at += len(sentence)
        found.append(story)
        answers.append(sorted(clusters.values()))
    return found, answers


def related(number: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """An animal has a colour, in one direction or the other, if one is marked as e1 and the other as e2."""
    draw = random.Random(seed)
    found, labels = [], []
    for k in range(number):
        first, second = ((ANIMALS, COLOURS), (COLOURS, ANIMALS), (ANIMALS, ANIMALS), (COLOURS, COLOURS))[k % 4]
        words = [*draw.choices(REST, k=3), draw.choice(ANIMALS), draw.choice(COLOURS)]
        draw.shuffle(words)
        marked = [f"<e1>{draw.choice(first)}</e1>", f"<e2>{draw.choice(second)}</e2>"]
        places = sorted(draw.sample(range(6), 2))
        for place, word in zip(reversed(places), reversed(marked), strict=True):
            words.insert(place, word)
        found.append(" ".join(words))
        labels.append(("Has-Colour(e1,e2)", "Has-Colour(e2,e1)", "Other", "Other")[k % 4])
    return found, labels


def clauses(number: int, seed: int = 0) -> tuple[list[list[str]], list[list[Frame]]]:
    """Who saw or fed whom, and when; the animals of one clause are not in the frame of another."""
    draw = random.Random(seed)
    tokens, frames = [], []
    for _ in range(number):
        sentence: list[str] = []
        spans: list[list[tuple[str, int]]] = []  # for each clause its roles and their lengths
        for _ in range(draw.randint(0, 2)):
            who, whom = ([*draw.choices(COLOURS, k=draw.randint(0, 1)), draw.choice(ANIMALS)] for _ in range(2))
            when = ["then"] * draw.randint(0, 1)
            sentence += [*when, *who, draw.choice(("saw", "fed")), *whom, "."]
            spans.append([("TMP", len(when)), ("A0", len(who)), ("V", 1), ("A1", len(whom)), ("", 1)])
        tokens.append(sentence or ["the", "cow"])
        frames.append([_frame(spans, k, len(sentence)) for k in range(len(spans))])
    return tokens, frames


def _frame(spans: list[list[tuple[str, int]]], number: int, length: int) -> Frame:
    tags = []
    for k, clause in enumerate(spans):
        for role, size in clause:
            kept = role and k == number
            tags += [f"{'I' if j else 'B'}-{role}" if kept else "O" for j in range(size)]
    assert len(tags) == length
    return Frame(tags.index("B-V"), tags)


def questions(number: int, seed: int = 0, *, answered: float = 1.0) -> tuple[list[Question], list[list[Span]]]:
    """The colour of one of some animals; a share of the questions asks for an animal that the text does not name."""
    draw = random.Random(seed)
    asked, answers = [], []
    for k in range(number):
        animals = draw.sample(ANIMALS, k=2)
        context = " ".join(f"The {animal} is {draw.choice(COLOURS)}." for animal in animals)
        known = draw.random() < answered
        animal = draw.choice(animals) if known else next(a for a in ANIMALS if a not in animals)
        begin = context.find(" is ", context.find(animal)) + len(" is ")
        text = context[begin : context.find(".", begin)]
        asked.append(Question(context, f"What is the {animal}?", f"q{k}"))
        answers.append([Span(begin, begin + len(text), text)] if known else [])
    return asked, answers

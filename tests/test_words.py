"""Code, help and docs are plain English: a short list of words and word orders that do not come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
UNITS = "batch|character|class|direction|epoch|file|layer|line|minute|row|second|sentence|step|text|token|weight|word"
INSTEAD = {
    r"(?<![\"'])(ahead|behind)(?![\"'])": "forward, backward",
    r"(an?|all|each|every|first|last|next|no|of|two|\d+) looks?|(?-i:Look)(?! [a-z])": "evaluation",
    r"look(s|ed|ing) at": "check, read",
    r"judged?": "evaluate",
    r"go(es|ing|ne)? on( with| from)?": "resume, continue",
    r"told": "report, say, give",
    r"known are|needed is|read are|accepted (are|is)": "accepted: ...; needs ...",
    r"(?<!there )(is|are|was|were) no(?= (?!longer\b|more than\b|better\b|other\b)\w)": "is not a ...",
    r"so many|so (long|much|often)(?! as\b)": "the number of ...; for ... minutes",
    r"begun": "started",
    r"(gone|went) away": "has ended, has disconnected",
    r"taken up again": "resumed",
    r"under way": "in progress",
    rf"(an?|one) (?!as |at |by |for |in |of |on |per |to |with )\w+ an? ({UNITS})": "one ... per ...",
    rf"(bytes|digits|numbers|sentences|steps|texts|tokens|words) an? ({UNITS})": "... per ...",
}
"""What is avoided, as a regular expression, and what to write instead."""
PATTERNS = {re.compile(rf"(?<![a-z])({words})(?![a-z])", re.IGNORECASE): better for words, better in INSTEAD.items()}
CHECKED = [
    *sorted(ROOT.glob("src/**/*.py")),
    *sorted(ROOT.glob("src/**/*.toml")),
    *sorted(ROOT.glob("src/**/*.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("examples/*.py")),
    *sorted(ROOT.glob("scripts/*.py")),
    *sorted(ROOT.glob("*.md")),
]


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def unwanted(text: str) -> list[str]:
    """The words that are avoided, with their line and what to write instead."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, better in PATTERNS.items():
            found += [f"{number}: {match[0]!r}; write {better}" for match in pattern.finditer(line)]
    return found


@pytest.mark.parametrize("path", CHECKED, ids=named)
def test_plain_english(path):
    assert unwanted(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "the layer ahead",
        "bits_behind",
        "after 5 looks",
        "class Look:",
        "labels are not looked at",
        "cannot be gone on with",
        "goes on from there",
        "is told how",
        "told_or_detected(lines)",
        "known are a, b",
        "needed is (4,)",
        "this is no model",
        "at most so many",
        "train for so long.",
        "was begun",
        "Begun(1)",
        "its reader has gone away",
        "is taken up again",
        "requests under way",
        "a vector a word",
        "one thread a direction",
        "1,000 tokens a second",
    ],
)
def test_what_is_avoided_is_found(text):
    assert unwanted(text)


@pytest.mark.parametrize(
    "text",
    [
        "there is no such file",
        "is no longer used",
        "look up a word",
        "bilmo looks for the file",
        "Look words up in lower case",
        "the right one in a step",
        "{'ahead': 'forward'}",
        "ids are looked up",
        "bookends",
        "as long as it runs",
        "so long as it runs",
        "a word and a token",
        "gives a word a vector",
        "storytelling",
    ],
)
def test_good_english_passes(text):
    assert unwanted(text) == []


def test_enough_is_checked():
    assert len(CHECKED) > 150

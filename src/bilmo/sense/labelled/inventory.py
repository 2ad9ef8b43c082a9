"""The senses that words can have, as WordNet's file `index.sense` lists them.

A line is `bank%1:14:00:: 08420278 2 20`: sense key, synset, number of the sense, how often it was tagged. A sense key
is the lemma, `%`, and numbers for the part of speech and the lexicographer file. Words of a lemma are joined by `_`.

Knows: text files. Blind to: vectors, sentences.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from bilmo.errors import TextError
from bilmo.text.files import text_lines

POS = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
"""The part of speech by the digit of a sense key: noun, verb, adjective, adverb; 5 is a satellite adjective."""
TOPICS = (
    "adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition "
    "noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person "
    "noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state "
    "noun.substance noun.time verb.body verb.change verb.cognition verb.communication verb.competition "
    "verb.consumption verb.contact verb.creation verb.emotion verb.motion verb.perception verb.possession "
    "verb.social verb.stative verb.weather adj.ppl"
).split()
"""Names of WordNet's lexicographer files, by number."""
ENDINGS = {
    "n": (
        ("s", ""),
        ("ses", "s"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "v": (("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    "a": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "r": (),
}
"""WordNet's rules of detachment, by part of speech: an ending of a form and what replaces it in the lemma."""
NOT_SENSES = "is not a line of WordNet's index.sense, such as `bank%1:14:00:: 08420278 2 20`"


class Lemma(NamedTuple):
    """A word as dictionaries list it."""

    name: str
    pos: str
    """n, v, a or r."""


class Listed(NamedTuple):
    """A sense of the inventory."""

    key: str
    synset: str
    number: int
    """1 is the first sense, which is the most frequent one."""
    tagged: int


class Inventory:
    """The senses of each lemma, the first one first."""

    def __init__(self, senses: Iterable[Listed]) -> None:
        self._senses: dict[Lemma, list[Listed]] = defaultdict(list)
        for sense in senses:
            self._senses[lemma_of(sense.key)].append(sense)
        for listed in self._senses.values():
            listed.sort(key=lambda sense: (sense.number, sense.key))
        self.longest = max((lemma.name.count("_") for lemma in self._senses), default=0) + 1
        """The number of words in the longest lemma."""

    @classmethod
    def read(cls, path: Path) -> Inventory:
        """Read index.sense, also compressed."""
        found = cls.parse(text_lines(path), str(path))
        if not found._senses:
            raise TextError(f"{path}: contains no senses; give WordNet's index.sense")
        return found

    @classmethod
    def parse(cls, rows: Iterable[str], name: str) -> Inventory:
        """The inventory in some lines; `name` is where they come from."""
        return cls(_parsed(rows, name))

    def __contains__(self, lemma: Lemma) -> bool:
        return lemma in self._senses

    def senses(self, lemma: Lemma) -> list[Listed]:
        """The senses of a lemma; empty for an unknown one."""
        return self._senses.get(lemma, [])

    def first(self, lemma: Lemma) -> str | None:
        """The first sense of a lemma; None for an unknown one."""
        listed = self._senses.get(lemma)
        return listed[0].key if listed else None

    def lemmas(self, form: str) -> list[Lemma]:
        """The lemmas that a form can belong to, by itself or by the rules of detachment.

        The last word of a form of several words may be inflected (`prime_ministers`), or the first (`took_place`).
        """
        names: dict[Lemma, None] = {}
        head, _, tail = form.partition("_")
        for pos, endings in ENDINGS.items():
            bases = [form, *_detached(form, endings)]
            if tail and pos == "v":
                bases += [f"{base}_{tail}" for base in _detached(head, endings)]
            names.update((Lemma(base, pos), None) for base in bases)
        return [lemma for lemma in names if lemma in self._senses]

    def lines(self) -> Iterator[str]:
        """The inventory as the lines of index.sense."""
        for listed in self._senses.values():
            for key, synset, number, tagged in listed:
                yield f"{key} {synset} {number} {tagged}"

    def synonyms(self, key: str) -> list[str]:
        """The other words of the synset of a sense, with spaces."""
        lemma = lemma_of(key)
        synsets = {sense.synset for sense in self.senses(lemma) if sense.key == key}
        others = [word for synset in synsets for word in self._by_synset[synset + lemma.pos]]
        return [word.replace("_", " ") for word in others if word != lemma.name]

    @cached_property
    def _by_synset(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for lemma, listed in self._senses.items():
            for sense in listed:
                found[sense.synset + lemma.pos].append(lemma.name)
        return found


def lemma_of(key: str) -> Lemma:
    """The lemma of a sense key; the key must be valid."""
    name, _, rest = key.partition("%")
    return Lemma(name, POS[rest[0]])


def topic_of(key: str) -> str:
    """The name of the lexicographer file of a sense, such as noun.group."""
    number = int(key.partition("%")[2].split(":")[1])
    return TOPICS[number] if number < len(TOPICS) else ""


def is_key(text: str) -> bool:
    """Whether a text is a sense key."""
    name, _, rest = text.partition("%")
    parts = rest.split(":")
    return bool(name) and len(parts) == 5 and parts[0] in POS and parts[1].isdecimal()


def _parsed(rows: Iterable[str], name: str) -> Iterator[Listed]:
    for number, row in enumerate(rows, start=1):
        parts = row.split()
        if not parts:
            continue
        if len(parts) != 4 or not is_key(parts[0]) or not (parts[2].isdecimal() and parts[3].isdecimal()):
            raise TextError(f"{name}, line {number}: {row[:60]!r} {NOT_SENSES}")
        yield Listed(parts[0], parts[1], int(parts[2]), int(parts[3]))


def _detached(form: str, endings: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (form[: -len(ending)] + other for ending, other in endings if form.endswith(ending) and form != ending)

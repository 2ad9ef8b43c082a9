"""Sentences in which words are marked with their senses: SemCor as JSON lines, and the XML of the ALL test set.

    {"words": ["He", "took_place", "."], "senses": [null, "take_place%2:30:00::", null]}       one sentence per line

    <sentence><wf>The</wf> <instance id="d0.t0" lemma="art" pos="NOUN">art</instance></sentence>  XML, and beside it
    d0.t0 art%1:09:00::                                                                           a file of gold keys

Words that the data joins by `_` (JSON) or by a space (XML) are separate tokens here.

Knows: text files, sense keys. Blind to: vectors, the inventory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from bilmo.errors import TextError
from bilmo.sense.labelled.inventory import Lemma, is_key, lemma_of
from bilmo.tasks.data.source import check_form, first_row, json_object, peek
from bilmo.text.files import text_lines

FORMS = {"jsonl": "JSON lines as of SemCor", "xml": "XML of the unified evaluation framework, with a file of gold keys"}
XML_POS = {"NOUN": "n", "VERB": "v", "ADJ": "a", "ADV": "r"}
LONE = re.compile("[\ud800-\udfff]")
"""Half of a character, which JSON can hold but UTF-8 cannot."""
PROPER = "NNP"
"""The part of speech of names in SemCor: "Mr._Smith" stands for the lemma `person`, which says nothing of the form."""


@dataclass(frozen=True)
class Use:
    """A word in a sentence, with its lemma and its senses."""

    begin: int
    end: int
    """Tokens; the end is not included."""
    lemma: Lemma
    senses: tuple[str, ...] = ()
    """Sense keys, of which each is right; empty where they are not known."""
    id: str = ""
    """Its name in a file of keys."""
    named: bool = False
    """Whether it is a name that stands for another lemma."""


@dataclass(frozen=True)
class Marked:
    """A sentence with the words whose senses are known or wanted."""

    tokens: list[str]
    uses: list[Use]


def read(path: Path, gold: Path | None = None, form: str = "auto") -> list[Marked]:
    """Read a file in either form; "auto" detects it. `gold` is the file of keys of an XML file."""
    first, rows = peek(path)
    form = check_form(form, FORMS) or ("xml" if first_row(first).lstrip().startswith("<") else "jsonl")
    if form == "xml":
        found = list(_xml(path, rows))
        keys = read_keys(gold) if gold is not None else {}
        found = [Marked(one.tokens, [replace(use, senses=keys.get(use.id, ())) for use in one.uses]) for one in found]
        known = {use.id for one in found for use in one.uses}
        strange = next((name for name in keys if name not in known), None)
        if strange is not None:
            raise TextError(f"{gold}: names {strange!r}, which is not in {path}; give the keys of that file")
    else:
        if gold is not None:
            raise TextError(f"{path}: is not XML; --gold belongs to XML, and JSON lines contain their senses")
        found = list(_jsonl(path, rows))
    if not found:
        raise TextError(f"{path}: contains no sentences")
    return found


def read_keys(path: Path) -> dict[str, tuple[str, ...]]:
    """A file of keys: on each line a name, and one sense key or several."""
    found: dict[str, tuple[str, ...]] = {}
    for number, row in enumerate(text_lines(path), start=1):
        name, *keys = row.split() or [""]
        if not name:
            continue
        if not keys or not all(is_key(key) for key in keys):
            raise TextError(
                f"{path}, line {number}: {row[:60]!r} is not a line of gold keys, such as `d0.t0 art%1:09:00::`"
            )
        if name in found:
            raise TextError(f"{path}, line {number}: names {name!r} for the second time")
        found[name] = tuple(keys)
    return found


def _jsonl(path: Path, rows: Iterator[str]) -> Iterator[Marked]:
    for number, row in enumerate(rows, start=1):
        if not row.strip():
            continue
        entry = json_object(path, number, row)
        words: Any = entry.get("words")
        senses: Any = entry.get("senses")
        if not _texts(words) or not isinstance(senses, list) or len(words) != len(senses):
            raise TextError(
                f'{path}, line {number}: must have "words", a list of strings that are not empty, and "senses", a list '
                "of the same length"
            )
        tags = entry.get("pos")
        tags = tags if isinstance(tags, list) and len(tags) == len(words) else [None] * len(words)
        tokens: list[str] = []
        uses = []
        for word, sense, tag in zip(words, senses, tags, strict=True):
            parts = word.replace("_", " ").split() or [word.strip()]
            if sense is not None:
                if not isinstance(sense, str) or not is_key(sense):
                    raise TextError(
                        f"{path}, line {number}: the sense {sense!r} is not a sense key, such as bank%1:14:00::"
                    )
                lemma = lemma_of(sense)
                named = tag == PROPER and lemma.name != word.lower()
                uses.append(Use(len(tokens), len(tokens) + len(parts), lemma, (sense,), named=named))
            tokens += parts
        yield Marked(tokens, uses)


def _texts(words: Any) -> bool:
    """Whether a value is a list of strings that are not blank and that UTF-8 can hold."""
    return isinstance(words, list) and all(
        isinstance(word, str) and word.strip() and not LONE.search(word) for word in words
    )


def _xml(path: Path, rows: Iterator[str]) -> Iterator[Marked]:
    parser: Any = ElementTree.XMLPullParser(("end",))
    lines = chain(rows, [None])
    try:
        for row in lines:
            parser.feed(f"{row}\n") if row is not None else parser.close()
            for _, element in parser.read_events():
                if element.tag == "sentence":
                    yield _sentence(path, element)
                    element.clear()
    except ElementTree.ParseError as error:
        raise TextError(f"{path}: is not XML ({error})") from None


def _sentence(path: Path, sentence: ElementTree.Element) -> Marked:
    tokens: list[str] = []
    uses = []
    for word in sentence:
        parts = (word.text or "").split()
        if not parts:
            continue
        if word.tag == "instance":
            facts: Mapping[str, str] = word.attrib
            if not {"id", "lemma", "pos"} <= facts.keys() or facts["pos"] not in XML_POS:
                raise TextError(
                    f"{path}: {dict(facts)} must have an id, a lemma, and a part of speech: {', '.join(XML_POS)}"
                )
            lemma = Lemma(facts["lemma"].lower(), XML_POS[facts["pos"]])
            uses.append(Use(len(tokens), len(tokens) + len(parts), lemma, id=facts["id"]))
        tokens += parts
    return Marked(tokens, uses)

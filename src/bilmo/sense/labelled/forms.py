"""The lemmas of the words of raw text: a table of forms learned from labelled text, and WordNet's rules of detachment.

Knows: labelled sentences, the inventory. Blind to: vectors.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from bilmo.errors import DamagedFile
from bilmo.sense.labelled.corpus import Marked, Use
from bilmo.sense.labelled.inventory import Inventory, Lemma

OPEN_SHARE = 0.1
"""A word that is labelled in a smaller share of its uses, such as "the" or "can", gets no sense."""
NO_LEMMA = Lemma("", "")
"""What an unlabelled use of a word counts as."""


class Forms:
    """How often each form was used for each lemma, in labelled text."""

    def __init__(self, counts: dict[str, Counter[Lemma]], inventory: Inventory) -> None:
        self._counts, self._inventory = counts, inventory
        self._longest = max(inventory.longest, max((form.count("_") for form in counts), default=0) + 1)

    @classmethod
    def learn(cls, sentences: Iterable[Marked], inventory: Inventory) -> Forms:
        """Count the forms of labelled sentences."""
        counts: dict[str, Counter[Lemma]] = defaultdict(Counter)
        for tokens, uses in ((one.tokens, one.uses) for one in sentences):
            labelled: set[int] = set()
            for use in uses:
                labelled.update(range(use.begin, use.end))
                if not use.named:
                    counts[form_of(tokens[use.begin : use.end])][use.lemma] += 1
            for place, token in enumerate(tokens):
                if place not in labelled:
                    counts[form_of([token])][NO_LEMMA] += 1
        return cls(dict(counts), inventory)

    def lemmas(self, form: str) -> list[Lemma]:
        """The lemmas of a form: those it was used for, otherwise those that the rules find in the inventory."""
        counts = self._counts.get(form)
        if counts is None:
            return self._inventory.lemmas(form)
        if counts[NO_LEMMA] > (1 - OPEN_SHARE) * counts.total():
            return []
        learned = [lemma for lemma in counts if lemma != NO_LEMMA]
        return list(dict.fromkeys([*learned, *self._inventory.lemmas(form)]))

    def uses(self, tokens: Sequence[str]) -> Iterator[tuple[Use, list[Lemma]]]:
        """The words of a sentence that have senses, and their lemmas; of words that overlap, the longest."""
        place = 0
        while place < len(tokens):
            for end in range(min(len(tokens), place + self._longest), place, -1):
                found = self.lemmas(form_of(tokens[place:end]))
                if found:
                    yield Use(place, end, found[0]), found
                    place = end
                    break
            else:
                place += 1

    def lines(self) -> Iterator[str]:
        """The table as lines: form, lemma, part of speech, count."""
        for form, counts in self._counts.items():
            for lemma, count in counts.items():
                yield "\t".join((form, lemma.name, lemma.pos, str(count)))

    @classmethod
    def parse(cls, rows: Iterable[str], name: str, inventory: Inventory) -> Forms:
        """The table that `lines` gave."""
        counts: dict[str, Counter[Lemma]] = defaultdict(Counter)
        for row in rows:
            parts = row.split("\t")
            if len(parts) != 4 or not parts[3].isdecimal():
                raise DamagedFile(f"{name}: {row[:60]!r} is not a form, a lemma, a part of speech and a count")
            counts[parts[0]][Lemma(parts[1], parts[2])] = int(parts[3])
        return cls(dict(counts), inventory)


def form_of(tokens: Sequence[str]) -> str:
    """Tokens as one form, as the inventory writes them."""
    return "_".join(tokens).lower()

"""Predicates and roles in the columns of CoNLL-2005 and CoNLL-2012: one bracketed column per predicate.

    word  ...  target  roles of the first target  roles of the second      CoNLL-2005
    Anna       -       (A0*)                      (A0*)
    wants      want    (V*)                       *
    to         -       (A1*                       *
    sleep      sleep   *)                         (V*)

Knows: the columns. Blind to: what roles mean.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from bilmo.errors import TextError

ColumnFrame = tuple[int, Sequence[str]]
"""The position of a predicate, and the BIO tags of its sentence."""
PREDICATE = "V"
"""The role of the predicate itself."""
CELL = re.compile(r"(?:\(([^()*]+))?\*(?:([^()*]*)\))?")
"""`(A0*`, `*`, `*)`, `(A0*)`; some files repeat the role at the end: `*A0)`."""
NONE = "-"
"""The mark of a word that is not a predicate."""
FIRST_2012, WORD_2012 = 11, 3
"""CoNLL-2012: the first column of roles; the column of the words. The last column is coreference."""


@dataclass(frozen=True)
class Block:
    """The lines of one sentence."""

    path: Path
    first: int
    """The number of the first line."""
    rows: list[list[str]]
    """The cells of each line, the same number in all."""

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.rows[0])

    def column(self, number: int) -> list[str]:
        """The cells of a column, counted from 0."""
        return [row[number] for row in self.rows]

    def marked(self, number: int) -> list[int]:
        """Positions of the words that a column marks as predicates."""
        return [k for k, cell in enumerate(self.column(number)) if cell != NONE]

    def tags(self, number: int) -> list[str]:
        """The brackets of a column as BIO tags."""
        tags: list[str] = []
        role, opened = "", 0
        for line, cell in enumerate(self.column(number), start=self.first):
            place = f"{self.path}, line {line}"
            found = CELL.fullmatch(cell)
            if found is None:
                raise TextError(
                    f"{place}: column {number + 1} has {cell!r}; expected a role such as (A0*, *, *) or (V*)"
                )
            starts, ends = found[1], found[2]
            if starts and role:
                raise TextError(f"{place}: {cell} opens a bracket inside ({role}*, which line {opened} opened")
            if ends is not None and not (starts or role):
                raise TextError(f"{place}: {cell} in column {number + 1} closes a bracket, but none is open")
            if starts:
                role, opened = starts, line
            if ends and ends != role:
                raise TextError(f"{place}: {cell} closes {ends}, but the open bracket is ({role}*")
            tags.append(f"{'B' if starts else 'I'}-{role}" if role else "O")
            if ends is not None:
                role = ""
        if role:
            raise TextError(f"{self.path}, line {opened}: the bracket ({role}* is not closed in its sentence")
        return tags


def blocks(path: Path, rows: Iterable[str]) -> Iterator[Block]:
    """Sentences between blank lines; lines that begin and end documents are left out."""
    cells: list[list[str]] = []
    first = 0
    for number, row in enumerate(chain(rows, [""]), start=1):
        found = row.split("\t") if "\t" in row else row.split()
        if row.strip() and not row.startswith(("#begin", "#end")):
            first = first or number
            cells.append([cell.strip() for cell in found])
            if len(found) != len(cells[0]):
                raise TextError(
                    f"{path}, line {number}: {len(found)} columns, but the lines before it in the same sentence have "
                    f"{len(cells[0])}"
                )
        elif cells:
            yield Block(path, first, cells)
            cells, first = [], 0


def is_conll2012(first: Sequence[str]) -> bool:
    """Whether the first lines of a file look like CoNLL-2012."""
    if any(row.startswith("#begin document") for row in first):
        return True
    cells = next((row.split() for row in first if row.strip()), [])
    return len(cells) > FIRST_2012 and cells[1].isdecimal() and cells[2] == "0"


def conll2012(path: Path, rows: Iterable[str]) -> Iterator[tuple[list[str], list[ColumnFrame]]]:
    """Words and frames; the predicate of a column is the word in its (V*)."""
    for block in blocks(path, rows):
        if block.width <= FIRST_2012:
            raise TextError(
                f"{path}, line {block.first}: {block.width} columns; CoNLL-2012 has at least {FIRST_2012 + 1}"
            )
        frames: list[ColumnFrame] = []
        for number in range(FIRST_2012, block.width - 1):
            tags = block.tags(number)
            if f"B-{PREDICATE}" not in tags:
                raise TextError(
                    f"{path}, line {block.first}: column {number + 1} of the sentence that starts here has roles, but "
                    f"no predicate ({PREDICATE}*)"
                )
            frames.append((tags.index(f"B-{PREDICATE}"), tags))
        yield block.column(WORD_2012), frames


def conll2005(path: Path, rows: Iterable[str], *, labelled: bool) -> Iterator[tuple[list[str], list[ColumnFrame]]]:
    """Words and frames. Any columns may stand between the words, which are first, and the marks of the predicates.

    labelled: False for files that may end with the marks, without columns of roles.
    """
    found = list(blocks(path, rows))
    if not found:
        return
    roles = _first_role(found)
    if not labelled and not roles and not any("*" in cell for block in found for cell in block.rows[0]):
        roles = found[0].width
    if roles == 1:
        raise TextError(
            f"{path}: its first column marks the predicates, so it has no words. Join it with the words: "
            "paste WORDS PROPS"
        )
    if not roles:
        raise TextError(
            f"{path}, line {found[0].first}: no column marks as many predicates as there are columns of roles after "
            f"it. The sentence that starts here has {found[0].width} columns; CoNLL-2005 has the word first, then a "
            "column with - for words that are not predicates, then one column of roles per predicate"
        )
    for block in found:
        if block.width < roles:
            raise TextError(
                f"{path}, line {block.first}: {block.width} columns; the predicates of this file are in column {roles}"
            )
        marked, present = block.marked(roles - 1), block.width - roles
        if present != len(marked) and (labelled or present):
            raise TextError(
                f"{path}, line {block.first}: the sentence that starts here has {len(marked)} predicates in column "
                f"{roles}, but {present} columns of roles after it"
            )
        tags = [block.tags(number) for number in range(roles, block.width)] or [[] for _ in marked]
        yield block.column(0), list(zip(marked, tags, strict=True))


def _first_role(found: Sequence[Block]) -> int:
    """The number of the first column of roles: the one that fits most sentences; 0 if it fits none."""
    fitting: Counter[int] = Counter()
    for block in found:
        for roles in range(1, block.width + 1):
            if len(block.marked(roles - 1)) == block.width - roles and _are_roles(block, roles):
                fitting[roles] += 1
    return max(fitting, key=lambda roles: (fitting[roles], roles), default=0)


def _are_roles(block: Block, first: int) -> bool:
    """Whether all cells from a column on look like brackets, and those in the column before do not."""
    return all("*" in cell for row in block.rows for cell in row[first:]) and not all(
        "*" in cell for cell in block.column(first - 1)
    )


def looks_like_roles(first: Sequence[str]) -> bool:
    """Whether some lines are CoNLL-2005 columns, with the roles of at least one predicate."""
    try:
        found = list(blocks(Path(), first))
    except TextError:
        return False
    verbs = any(cell.startswith(f"({PREDICATE}*") for block in found for row in block.rows for cell in row)
    return verbs and bool(_first_role(found))

"""The inputs of `bilmo embed`: files, folders, standard input, text on the command line; as texts or lists of tokens.

Knows: text files, JSON lines. Blind to: networks, output files.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path

import regex

from bilmo.errors import TextError
from bilmo.text.csv_rows import csv_rows
from bilmo.text.files import STDIN, all_lines, files
from bilmo.text.split import SAMPLE

Item = str | list[str]
"""A raw text, or the tokens of one sentence."""

FILE_ENDINGS = tuple(".txt .text .md .gz .xz .zst .zip .json .jsonl .csv .tsv .conll .conllu".split())
JSON_LINES = regex.compile(r"\.(jsonl|ndjson)(\.(gz|xz|zst))?$", regex.IGNORECASE)
TABLE = regex.compile(r"\.(csv|tsv)(\.(gz|xz|zst))?$", regex.IGNORECASE)
END_MARK = regex.compile(r"[.!?…。！？]$")


@dataclass(frozen=True)
class Survey:
    """The counts and the hash from one pass over all inputs."""

    lines: int
    characters: int
    digest: str


class TextDigest:
    """A fingerprint of texts in their order, at any point of them."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=16)
        self.characters = 0
        """Length of all texts added so far."""

    def add(self, item: Item) -> None:
        """Add one text."""
        kind, text = ("text", item) if isinstance(item, str) else ("tokens", json.dumps(item))
        self.characters += len(text)
        content = text.encode("utf-8", "surrogatepass")
        self._digest.update(b"%s %d " % (kind.encode(), len(content)) + content)

    @property
    def value(self) -> str:
        """The fingerprint of all texts added so far."""
        return self._digest.hexdigest()


@dataclass(frozen=True)
class Inputs:
    """The arguments of the command, in order.

    >>> list(Inputs(("He sat on the bank.",)).items())
    ['He sat on the bank.']
    """

    arguments: tuple[str, ...]
    field: str | None = None
    """The field of JSON lines with the text or its tokens, or the column of CSV or TSV with the text."""

    def items(self) -> Iterator[Item]:
        """Every line of every input, including blank ones; standard input can be read only once."""
        return chain(*self._opened) if self.piped else self._read()

    @property
    def sample(self) -> list[Item]:
        """The first lines, to detect and estimate from."""
        return self._opened[0]

    @cached_property
    def _opened(self) -> tuple[list[Item], Iterator[Item]]:
        """The first lines and the rest; a pipe cannot be read twice."""
        rest = self._read()
        return list(islice(rest, SAMPLE)), rest

    def _read(self) -> Iterator[Item]:
        for argument in self.arguments:
            if is_text(argument):
                yield from decoded_argument(argument).removesuffix("\n").split("\n")
            elif self.field is not None:
                yield from (item for path in self._files(argument) for item in _fields(path, self.field))
            else:
                for path in self._files(argument):
                    for pattern, what in ((JSON_LINES, "JSON lines"), (TABLE, "a table")):
                        if pattern.search(path.name):
                            raise TextError(
                                f"{path}: this file contains {what}; name the field to embed with --field NAME"
                            )
                    yield from all_lines([path])

    def _files(self, argument: str) -> list[Path]:
        path = Path(argument)
        if path != STDIN and not path.exists():
            raise TextError(f"{path}: there is no such file. To embed the word itself, put a space after it: '{path} '")
        return files([path])

    @property
    def paths(self) -> list[Path]:
        """The arguments that name files or folders."""
        return [Path(argument) for argument in self.arguments if not is_text(argument)]

    @property
    def piped(self) -> bool:
        """Whether standard input is one of the inputs, which can be read only once."""
        return str(STDIN) in self.arguments

    @property
    def without_stdin(self) -> Inputs:
        """The inputs that can be read again."""
        return replace(self, arguments=tuple(argument for argument in self.arguments if argument != str(STDIN)))

    def survey(self) -> Survey:
        """Read everything: count it, check it, and compute its fingerprint."""
        digest = TextDigest()
        lines = 0
        for item in self.items():
            digest.add(item)
            lines += 1
        return Survey(lines, digest.characters, digest.value)


def length_of(item: Item) -> int:
    """Characters of a text; tokens count as they are written in JSON."""
    return len(item if isinstance(item, str) else json.dumps(item))


def is_text(argument: str) -> bool:
    """Whether an argument is text to embed and not a file name.

    It is text if no such file exists and it has white space in it, ends in a full stop or the like, or has letters
    beyond ASCII and no dot or slash; but never if it ends like a file name.

    >>> is_text("He sat on the bank."), is_text("他坐在河边"), is_text("my file.txt"), is_text("bank")
    (True, True, False, False)
    """
    if not argument.strip():
        return True
    if argument == str(STDIN) or argument.lower().endswith(FILE_ENDINGS):
        return False
    try:
        if Path(argument).exists():
            return False
    except (OSError, ValueError):  # too long for a file name, or with a NUL in it
        return True
    foreign = not argument.isascii() and not set(argument) & set("./\\")
    return bool(argument.split() != [argument] or END_MARK.search(argument) or foreign)


def decoded_argument(argument: str) -> str:
    """Text on the command line. Bytes that Python could not decode are decoded as UTF-8, as in files, or refused."""
    if not any("\ud800" <= character <= "\udfff" for character in argument):
        return argument
    try:
        return os.fsencode(argument).decode("utf-8")
    except UnicodeError:
        raise TextError(f"{argument!r}: this text is not UTF-8. Write it to a UTF-8 file, and name the file.") from None


def _fields(path: Path, field: str) -> Iterator[Item]:
    table = TABLE.search(path.name)
    return _column(path, field, table[1].lower()) if table else _json_fields(path, field)


def _column(path: Path, name: str, form: str) -> Iterator[str]:
    """A column of CSV or TSV, whose first row names the columns."""
    lines = all_lines([path])
    rows = csv_rows(path, lines) if form == "csv" else ((n, row.split("\t")) for n, row in enumerate(lines, start=1))
    _, names = next(rows, (1, [""]))
    if name not in names:
        raise TextError(f"{path}: has no column {name!r}; its first row names {', '.join(names)}")
    for number, row in rows:
        if len(row) != len(names):
            raise TextError(f"{path}, line {number}: {len(row)} columns; the first row names {len(names)}")
        yield row[names.index(name)]


def _json_fields(path: Path, field: str) -> Iterator[Item]:
    for number, line in enumerate(all_lines([path]), start=1):
        where = f"{path}, line {number}"
        if not line.strip():
            yield ""
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise TextError(f"{where}: is not JSON ({error}); with --field every line must be a JSON object") from None
        if not isinstance(record, dict) or field not in record:
            found = f"its fields are {', '.join(record)}" if isinstance(record, dict) else "it is not an object"
            raise TextError(f"{where}: has no field {field!r}; {found}")
        value = record[field]
        if not isinstance(value, str) and not _is_tokens(value):
            raise TextError(f"{where}: the field {field!r} is neither a text nor a list of tokens: {value!r:.60}")
        yield value


def _is_tokens(value: object) -> bool:
    return isinstance(value, Sequence) and all(isinstance(token, str) for token in value)

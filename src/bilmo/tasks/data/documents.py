"""Documents with clusters of mentions from files: CoNLL-2012 columns, JSON lines; or plain text.

A mention is a span of tokens, (first, last), counted over the whole document. A cluster is a list of mentions.

Knows: the forms. Blind to: how clusters are found.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bilmo.errors import TextError
from bilmo.tasks.data.source import Source, check_form, first_row, is_tokens, json_object, peek, suffix

FORMS = {
    "conll": "CoNLL-2012 columns",
    "jsonl": 'JSON lines with "sentences" and "clusters"',
    "text": "plain text, one document",
}
BY_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".conll": "conll"}
BEGIN, END = "#begin document", "#end document"
WORD = 3
"""The column of CoNLL-2012 with the token; the last column has the mentions."""
NONE = ("", "-", "_", "*")
"""What stands in the last column where no mention begins or ends."""
MARK = re.compile(r"(\()?([^()|]+)(\))?")

Mention = tuple[int, int]
"""First and last token."""
Cluster = Sequence[Mention]
Clusters = Sequence[Cluster]


class Document(NamedTuple):
    """The sentences of a document as tokens."""

    sentences: Sequence[Sequence[str]]
    name: str = ""
    """What CoNLL-2012 calls the document, with its part."""
    text: str = ""
    """The raw text that it was split from; empty where it was given as tokens."""


def detect_form(path: Path, form: str, *, answers: bool) -> Source:
    """The form of a file: the one asked for, or that of its first lines or its name.

    answers: whether clusters are needed, which plain text does not have.
    """
    asked = check_form(form, FORMS)
    first, rows = peek(path)
    line = first_row(first)
    found = "jsonl" if line.lstrip().startswith("{") else "conll" if line.startswith(BEGIN) else ""
    source = Source(path, asked or found or BY_SUFFIX.get(suffix(path), "text"), rows)
    if answers and source.form == "text":
        raise TextError(
            f"{path}: is plain text, which has no clusters; accepted: {FORMS['conll']}, which start with "
            f"{BEGIN!r}, and {FORMS['jsonl']}"
        )
    return source


def read_examples(source: Source) -> tuple[list[Document], list[Clusters]]:
    """Documents and their clusters."""
    documents, answers = [], []
    for document, clusters in _entries(source, answers=True):
        documents.append(document)
        answers.append(clusters)
    if not documents:
        raise TextError(f"{source.path}: contains no documents")
    return documents, answers


def read_documents(source: Source) -> Iterator[Document]:
    """Documents alone; clusters in the file are ignored. Plain text is not here, for it must be split first."""
    return (document for document, _ in _entries(source, answers=False))


def _entries(source: Source, *, answers: bool) -> Iterator[tuple[Document, Clusters]]:
    read = _jsonl if source.form == "jsonl" else _conll
    return read(source.path, source.rows, answers=answers)


def _conll(path: Path, rows: Iterable[str], *, answers: bool) -> Iterator[tuple[Document, Clusters]]:
    reader: _Reader | None = None
    for number, row in enumerate(rows, start=1):
        where = f"{path}, line {number}"
        if row.startswith(BEGIN):
            if reader is not None:
                raise TextError(f"{where}: a document begins, but the one of line {reader.line} has not ended")
            reader = _Reader(row[len(BEGIN) :].strip(), number)
        elif row.startswith(END):
            if reader is None:
                raise TextError(f"{where}: a document ends, but none has started")
            yield reader.document(), reader.clusters
            reader = None
        elif row.strip() and not row.startswith("#"):
            if reader is None:
                raise TextError(f"{where}: comes before {BEGIN!r}; CoNLL-2012 has such a line before each document")
            reader.add(where, row, answers=answers)
        elif reader is not None:
            reader.end_sentence()
    if reader is not None:
        raise TextError(f"{path}: the document of line {reader.line} has no line {END!r}; the file seems cut off")


class _Reader:
    """One document of CoNLL-2012, line by line."""

    def __init__(self, name: str, line: int) -> None:
        self.name, self.line = name, line
        self._sentences: list[list[str]] = []
        self._sentence: list[str] = []
        self._token = 0
        self._open: dict[str, list[tuple[int, str]]] = defaultdict(list)
        self._clusters: dict[str, list[Mention]] = defaultdict(list)

    def add(self, where: str, row: str, *, answers: bool) -> None:
        """Read the line of one token."""
        cells = row.rstrip("\r\n").split("\t") if "\t" in row else row.split()
        if len(cells) <= WORD + 1:
            raise TextError(
                f"{where}: {len(cells)} columns; CoNLL-2012 has the token in column 4 and mentions in the last"
            )
        self._sentence.append(cells[WORD])
        if answers and cells[-1].strip() not in NONE:
            self._marks(where, cells[-1].strip())
        self._token += 1

    def _marks(self, where: str, cell: str) -> None:
        for mark in cell.split("|"):
            found = MARK.fullmatch(mark)
            if found is None or not (found[1] or found[3]):
                raise TextError(
                    f"{where}: the last column is {cell!r}; a mention is written (1, 1) or (1), joined by |"
                )
            name = found[2]
            if found[1]:
                self._open[name].append((self._token, where))
            if found[3]:
                if not self._open[name]:
                    raise TextError(f"{where}: {mark!r} closes a mention of cluster {name} that is not open")
                self._clusters[name].append((self._open[name].pop()[0], self._token))

    def end_sentence(self) -> None:
        """A blank line."""
        if self._sentence:
            self._sentences.append(self._sentence)
            self._sentence = []

    def document(self) -> Document:
        """The document; all mentions must be closed."""
        self.end_sentence()
        for name, places in self._open.items():
            if places:
                raise TextError(f"{places[-1][1]}: the bracket of cluster {name} is never closed")
        return Document(self._sentences, self.name)

    @property
    def clusters(self) -> Clusters:
        """In the order of their first mention."""
        return ordered(self._clusters.values())


def ordered(clusters: Iterable[Iterable[Mention]]) -> list[list[Mention]]:
    """Mentions in the order of the text, clusters by their first mention."""
    return sorted(sorted(cluster) for cluster in clusters if cluster)


def _jsonl(path: Path, rows: Iterable[str], *, answers: bool) -> Iterator[tuple[Document, Clusters]]:
    for number, row in enumerate(rows, start=1):
        if not row.strip():
            continue
        where = f"{path}, line {number}"
        entry = json_object(path, number, row)
        sentences = entry.get("sentences")
        if not isinstance(sentences, list) or not all(is_tokens(sentence) for sentence in sentences):
            raise TextError(f'{where}: needs "sentences", a list of lists of tokens')
        clusters: Clusters = []
        if answers:
            if "clusters" not in entry:
                raise TextError(f'{where}: has no "clusters"')
            clusters = _clusters(where, entry["clusters"])
            check_clusters(clusters, sum(map(len, sentences)), where)
        name = entry.get("name", "")
        yield Document(sentences, name if isinstance(name, str) else ""), clusters


def _clusters(where: str, found: object) -> Clusters:
    lists = isinstance(found, list) and all(isinstance(cluster, list) for cluster in found)
    if not isinstance(found, list) or not lists or not all(_is_mention(span) for cluster in found for span in cluster):
        raise TextError(
            f'{where}: "clusters" must be lists of [first, last], numbers of tokens of the document, counted from 0'
        )
    return ordered([[(first, last) for first, last in cluster] for cluster in found])


def _is_mention(span: object) -> bool:
    return isinstance(span, list) and len(span) == 2 and all(type(token) is int for token in span)


def check_clusters(clusters: Clusters, tokens: int, where: str) -> None:
    """Refuse mentions outside the document, and those in two clusters."""
    seen: dict[Mention, int] = {}
    for number, cluster in enumerate(clusters):
        for first, last in cluster:
            if not 0 <= first <= last < tokens:
                raise TextError(
                    f"{where}: the mention {[first, last]} is not in the document, which has {tokens:,} tokens"
                )
            if seen.setdefault((first, last), number) != number:
                raise TextError(f"{where}: the mention {[first, last]} is in two clusters")
            seen[first, last] = number


def marked(document: Document, clusters: Clusters) -> Iterator[str]:
    """One line per sentence with each mention in brackets, and the number of its cluster after it.

    >>> list(marked(Document([["Anna", "saw", "her", "cat"]]), [[(0, 0), (2, 2)], [(2, 3)]]))
    ['[Anna]1 saw [[her]1 cat]2']
    """
    opens, closes = _brackets(clusters)
    at = 0
    for sentence in document.sentences:
        yield " ".join(
            "[" * opens[at + k] + token + "".join(f"]{number}" for number in closes.get(at + k, ()))
            for k, token in enumerate(sentence)
        )
        at += len(sentence)


def conll(document: Document, clusters: Clusters, number: int) -> Iterator[str]:
    """A document in CoNLL-2012 columns; columns that are not known have `-`."""
    name = document.name or f"(document {number}); part 000"
    found = re.match(r"\((.*)\); part (\d+)", name)
    ident, part = (found[1].replace(" ", "_"), str(int(found[2]))) if found else (f"document_{number}", "0")
    marks: dict[int, list[str]] = defaultdict(list)
    for k, cluster in enumerate(clusters):
        for first, last in sorted(cluster, key=lambda span: (span[0], -span[1])):
            if first == last:
                marks[first].append(f"({k})")
            else:
                marks[first].append(f"({k}")
                marks[last].append(f"{k})")
    yield f"{BEGIN} {name}"
    at = 0
    for sentence in document.sentences:
        for k, token in enumerate(sentence):
            yield "\t".join([ident, part, str(k), token, *"-" * 7, "|".join(marks[at + k]) or "-"])
        yield ""
        at += len(sentence)
    yield END


def _brackets(clusters: Clusters) -> tuple[dict[int, int], dict[int, list[int]]]:
    """How many mentions begin at a token, and the clusters of the mentions that end there, inner ones first."""
    opens: dict[int, int] = defaultdict(int)
    ends: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, cluster in enumerate(clusters, start=1):
        for first, last in cluster:
            opens[first] += 1
            ends[last].append((-first, number))
    return opens, {last: [number for _, number in sorted(found)] for last, found in ends.items()}

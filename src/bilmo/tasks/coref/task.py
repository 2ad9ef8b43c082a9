"""Coreference: which mentions in a document refer to the same person or thing.

Knows: Task, documents, splitters. Blind to: torch until a head is built, the command line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bilmo.errors import TextError
from bilmo.ids.batch import Sentence, listed
from bilmo.tasks.core import html
from bilmo.tasks.core.measure import Score
from bilmo.tasks.core.spec import Dataset, PredictionInput, Prepared, Task
from bilmo.tasks.coref.measure import coref_score
from bilmo.tasks.coref.settings import CorefSettings
from bilmo.tasks.data import documents
from bilmo.tasks.data.documents import Clusters, Document, Mention
from bilmo.tasks.data.splitting import ModelSplit, choose_task_dictionary, choose_task_split, split_texts
from bilmo.tasks.network.probabilities import Probabilities
from bilmo.text.offsets import offsets

if TYPE_CHECKING:
    from bilmo.tasks.coref.coreference import Coreference
    from bilmo.tasks.coref.head import SpanHead
    from bilmo.tasks.network.batch import Text
    from bilmo.tasks.network.input import TaskInput

MOST_TOKENS = 10_000
"""In a document: memory grows with the square of the number of kept spans."""
RawDocument = str | Document | Sequence[Sequence[str]]
"""A text, or its sentences as lists of tokens."""


@dataclass(frozen=True)
class DocumentItem:
    """One document, and its clusters where they are known."""

    text: Text
    clusters: Clusters = ()

    @property
    def texts(self) -> Sequence[Text]:
        """The one text."""
        return (self.text,)


@dataclass(frozen=True, kw_only=True)
class PreparedCoref(Prepared[RawDocument, DocumentItem, Clusters, CorefSettings]):
    """Facts learned from the training examples: whether clusters of one mention are marked too."""

    singletons: bool
    """Whether the training documents have clusters of one mention."""
    lang: str
    """How strings are split; "auto" where that is detected."""
    model_split: str = ""
    """How the training text of the biLM was split; empty where that is unknown."""

    def documents(self, examples: Sequence[RawDocument]) -> list[Document]:
        """Examples as tokens; strings are split."""
        found = []
        for number, example in enumerate(examples):
            if isinstance(example, str):
                lang = choose_task_split(self.lang, example.split("\n"), self.model_split)
                document = Document(split_texts([example], lang, self.dictionary)[0], text=example)
            elif isinstance(example, Document):
                document = example
            else:
                document = Document(listed(example))
            tokens = sum(map(len, document.sentences))
            if tokens > MOST_TOKENS:
                raise TextError(
                    f"document {number + 1} has {tokens:,} tokens; coreference reads at most {MOST_TOKENS:,} at a "
                    "time. Divide it, for example into chapters."
                )
            found.append(document)
        return found

    def check(self, examples: Sequence[RawDocument], answers: Sequence[Clusters]) -> list[Clusters]:
        """Mentions must be in their document, each in one cluster."""
        return _check_clusters(self.documents(examples), answers)

    def items(self, examples: Sequence[RawDocument], answers: Sequence[Clusters] | None = None) -> list[DocumentItem]:
        """Documents as lists of sentences."""
        found = []
        all_clusters: Sequence[Clusters] = [()] * len(examples) if answers is None else answers
        for document, clusters in zip(self.documents(examples), all_clusters, strict=True):
            text: list[Sentence] = [list(sentence) for sentence in document.sentences if sentence]
            found.append(DocumentItem(text, clusters))
        return found

    def head(self, input: TaskInput, settings: CorefSettings) -> SpanHead:
        """A head over spans."""
        from bilmo.tasks.coref.head import SpanHead

        return SpanHead(input, settings, singletons=self.singletons)

    def count(self, answers: Iterable[Clusters]) -> dict[str, int]:
        """There are no labels."""
        return {}

    def known(self) -> set[str]:
        """There are no labels."""
        return set()

    def measure(self, true: Sequence[Clusters], predicted: Sequence[Clusters]) -> Score:
        """The mean F1 of MUC, B3 and CEAF-e."""
        return coref_score(true, predicted)

    def read(self, path: Path, form: str, settings: CorefSettings) -> PredictionInput[RawDocument]:
        """Documents; clusters in the file are ignored. A file of plain text is one document."""
        source = documents.detect_form(path, form, answers=False)
        if source.form != "text":
            return PredictionInput(documents.FORMS[source.form], iter(documents.read_documents(source)))
        text = "\n".join(source.rows)
        lang = choose_task_split(self.lang, text.split("\n"), self.model_split)
        return PredictionInput(f"{documents.FORMS['text']}, split as {lang}", iter([text]))

    def header(self, form: str, *, probabilities: bool) -> str | None:
        """No form has one."""
        return None

    def lines(
        self,
        examples: Sequence[RawDocument],
        answers: Sequence[Clusters],
        probabilities: Sequence[Probabilities] | None,
        form: str,
        number: int,
    ) -> Iterator[str]:
        """One line per sentence with marked mentions, CoNLL-2012 columns, or one JSON object per document."""
        all_shares: Sequence[Sequence[float]] = [()] * len(examples) if probabilities is None else probabilities
        for k, (document, clusters, shares) in enumerate(
            zip(self.documents(examples), answers, all_shares, strict=True), start=number
        ):
            if form == "jsonl":
                yield json.dumps(_entry(document, clusters, shares), ensure_ascii=False)
            elif form == "conll":
                yield from documents.conll(document, clusters, k)
            elif form == "html":
                yield _article(document, clusters, shares)
            else:
                yield from documents.marked(document, clusters)
                yield ""


def _entry(document: Document, clusters: Clusters, shares: Sequence[float]) -> dict[str, object]:
    """A document for JSONL; raw text has its mentions with offsets in characters."""
    entry: dict[str, object] = {"name": document.name} if document.name else {}
    entry |= {"sentences": document.sentences, "clusters": clusters}
    if document.text:
        places = offsets(document.text, [token for sentence in document.sentences for token in sentence])
        entry["text"] = document.text
        entry["mentions"] = [[_mention(document.text, places, span) for span in cluster] for cluster in clusters]
    if shares:
        rest = iter(shares)
        entry["probabilities"] = [[round(next(rest), 6) for _ in cluster] for cluster in clusters]
    return entry


def _mention(text: str, places: Sequence[tuple[int, int]], span: Mention) -> dict[str, object]:
    begin, end = places[span[0]][0], places[span[1]][1]
    return {"begin": begin, "end": end, "text": text[begin:end]}


def _article(document: Document, clusters: Clusters, shares: Sequence[float]) -> str:
    """A document with one colour per cluster; the first mention of its cluster is the title of each mention."""
    text = document.text or "\n".join(" ".join(sentence) for sentence in document.sentences)
    places = offsets(text, [token for sentence in document.sentences for token in sentence])
    rest = iter(shares)
    marks = []
    for number, cluster in enumerate(clusters):
        spans = [(places[first][0], places[last][1]) for first, last in cluster]
        title = text[slice(*spans[0])]
        marks += [html.Mark(*span, number, str(number + 1), next(rest, None), title) for span in spans]
    return html.article([html.marked(text, marks)], document.name)


class Coref(Task[RawDocument, DocumentItem, Clusters, CorefSettings]):
    """The specification."""

    name = "coref"
    summary = "which mentions in a document refer to the same person or thing"
    settings = CorefSettings
    prepared = PreparedCoref
    forms: ClassVar = {name: what for name, what in documents.FORMS.items() if name != "text"}
    outputs = ("marked", "conll", "jsonl", "html")

    def read(self, path: Path, form: str, settings: CorefSettings) -> Dataset[RawDocument, Clusters]:
        """Documents and their clusters."""
        source = documents.detect_form(path, form, answers=True)
        found, answers = documents.read_examples(source)
        return Dataset(found, answers, source.form)

    def prepare(
        self, data: Dataset[RawDocument, Clusters], settings: CorefSettings, model_split: ModelSplit
    ) -> tuple[PreparedCoref, list[Clusters], list[str]]:
        """Find out whether there are clusters of one mention, and which mentions can be found."""
        prepared = PreparedCoref(
            singletons=any(len(cluster) == 1 for clusters in data.answers for cluster in clusters),
            lang=settings.lang,
            model_split=model_split.lang,
            dictionary=choose_task_dictionary(settings.dictionary, settings.lang, model_split),
        )
        found = prepared.documents(data.examples)
        answers = _check_clusters(found, data.answers)
        mentions = sum(len(cluster) for clusters in answers for cluster in clusters)
        if not mentions:
            raise TextError("no document has a cluster; there is nothing to learn")
        return prepared, answers, _unreachable(found, answers, settings.span_width, mentions)

    def estimator(self) -> type[Coreference]:
        """Coreference."""
        from bilmo.tasks.coref.coreference import Coreference

        return Coreference


COREF = Coref()


def _check_clusters(found: Sequence[Document], answers: Sequence[Clusters]) -> list[Clusters]:
    """Clusters as sorted lists of pairs."""
    checked: list[Clusters] = []
    for number, (document, clusters) in enumerate(zip(found, answers, strict=True), start=1):
        plain = documents.ordered([(int(first), int(last)) for first, last in cluster] for cluster in clusters)
        documents.check_clusters(plain, sum(map(len, document.sentences)), f"document {number}")
        checked.append(plain)
    return checked


def _unreachable(found: Sequence[Document], answers: Sequence[Clusters], widest: int, mentions: int) -> list[str]:
    """A note on mentions that no span of the head can be."""
    missed = 0
    for document, clusters in zip(found, answers, strict=True):
        sentence = [number for number, tokens in enumerate(document.sentences) for _ in tokens]
        spans = [span for cluster in clusters for span in cluster]
        missed += sum(last - first >= widest or sentence[first] != sentence[last] for first, last in spans)
    if not missed:
        return []
    return [
        f"{missed:,} of {mentions:,} mentions have more than {widest} tokens (span_width) or cross the end of a "
        "sentence, and cannot be found"
    ]

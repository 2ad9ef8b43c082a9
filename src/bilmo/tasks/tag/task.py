"""Tagging: one tag per token.

Knows: Task, tagged sentences, span schemes. Blind to: torch until a head is built, the command line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bilmo.errors import TextError
from bilmo.ids.batch import listed
from bilmo.tasks.core import html
from bilmo.tasks.core.measure import Score, by_span, by_token
from bilmo.tasks.core.spec import Dataset, PredictionInput, Prepared, Task, check_labels
from bilmo.tasks.data import columns, spans
from bilmo.tasks.data.rows import row
from bilmo.tasks.data.splitting import ModelSplit, choose_task_dictionary, split_lines
from bilmo.tasks.network.probabilities import Probabilities
from bilmo.tasks.tag.settings import TagSettings
from bilmo.text.split import splitter

if TYPE_CHECKING:
    from bilmo.tasks.network.batch import Text
    from bilmo.tasks.network.input import TaskInput
    from bilmo.tasks.tag.head import TagHead
    from bilmo.tasks.tag.tagger import Tagger

MOST_TAGS = 1000
"""The largest sets of tags have some hundreds. Memory and time grow with the square of their number."""
Tokens = Sequence[str]
Tags = Sequence[str]
MOST_NAMED = 5
"""Tags that violate the scheme and are named in a note."""


@dataclass(frozen=True)
class SentenceItem:
    """One sentence as a text, and the numbers of its tags where they are known."""

    text: Text
    tags: Sequence[int] = ()

    @property
    def texts(self) -> Sequence[Text]:
        """The one text."""
        return (self.text,)


@dataclass(frozen=True, kw_only=True)
class PreparedTag(Prepared[Tokens, SentenceItem, Tags, TagSettings]):
    """Facts learned from the training examples: the tags, and how they mark spans.

    Tags of spans are predicted as BIOES, which says most about where a span ends, and converted back.
    """

    labels: tuple[str, ...]
    """The tags that the network predicts."""
    scheme: spans.Scheme
    """How the given tags mark spans; plain where they do not."""
    model_split: str = ""
    """How the training text of the biLM was split, so that raw text is split alike; empty where that is unknown."""

    def __post_init__(self) -> None:
        check_labels(self.labels, most=MOST_TAGS)

    def check(self, examples: Sequence[Tokens], answers: Sequence[Tags]) -> list[Tags]:
        """Each token needs one tag."""
        return _check_lengths(examples, answers)

    def items(self, examples: Sequence[Tokens], answers: Sequence[Tags] | None = None) -> list[SentenceItem]:
        """Each sentence as a text of one sentence."""
        texts = [[tokens] if tokens else [] for tokens in listed(examples)]
        numbers = {tag: number for number, tag in enumerate(self.labels)}
        found = []
        for text, tags in zip(texts, [()] * len(texts) if answers is None else answers, strict=True):
            learned = tags if self.scheme == "plain" else spans.write(spans.spans(tags), len(tags), "BIOES")
            found.append(SentenceItem(text, [numbers[tag] for tag in learned]))
        return found

    def head(self, input: TaskInput, settings: TagSettings) -> TagHead:
        """A head with one score per token and tag."""
        from bilmo.tasks.tag.head import TagHead

        return TagHead(input, self.labels, self.scheme, settings)

    def count(self, answers: Iterable[Tags]) -> dict[str, int]:
        """How often each tag occurs, or each type of span."""
        if self.scheme == "plain":
            return dict(sorted(Counter(tag for tags in answers for tag in tags).items()))
        # A span without a type is counted by its first tag, and so is a tag of no scheme.
        kinds = Counter(kind or tags[start] for tags in answers for kind, start, _ in spans.spans(tags))
        return dict(sorted(kinds.items()))

    def known(self) -> set[str]:
        """The trained tags, or types of spans."""
        if self.scheme == "plain":
            return set(self.labels)
        return {spans.parts(tag)[1] or tag for tag in self.labels if tag != spans.OUTSIDE}

    def measure(self, true: Sequence[Tags], predicted: Sequence[Tags]) -> Score:
        """Span F1 as conlleval counts it; token accuracy for tags that do not mark spans."""
        if self.scheme == "plain":
            return by_token(true, predicted)
        found, _ = spans.scheme_of(true)
        return by_span(true, predicted, None if found in (self.scheme, "plain") else self.scheme)

    def read(self, path: Path, form: str, settings: TagSettings) -> PredictionInput[Tokens]:
        """Sentences to tag. Lines of raw text are split; each of their sentences is one example."""
        source = columns.detect_input_form(path, form, lambda tag: not self.unseen([[tag]]), settings.column)
        if source.form != "lines":
            return PredictionInput(columns.FORMS[source.form], columns.read_sentences(source))
        lang, sentences = split_lines(source.rows, settings.lang, self.model_split, self.dictionary)
        return PredictionInput(f"{columns.FORMS['lines']}, split as {lang}", sentences)

    def header(self, form: str, *, probabilities: bool) -> str | None:
        """Names of columns; CoNLL and JSONL have none."""
        if form not in ("table", "csv"):
            return None
        return row(["sentence", "token", "tag", *(["probability"] if probabilities else [])], form)

    def lines(
        self,
        examples: Sequence[Tokens],
        answers: Sequence[Tags],
        probabilities: Sequence[Probabilities] | None,
        form: str,
        number: int,
    ) -> Iterator[str]:
        """One line per token, or one per sentence in JSONL."""
        all_shares = probabilities if probabilities is not None else [()] * len(examples)
        for sentence, (tokens, tags, shares) in enumerate(
            zip(examples, answers, all_shares, strict=True), start=number
        ):
            if form == "jsonl":
                entry: dict[str, object] = {"tokens": list(tokens), "tags": tags}
                if probabilities is not None:
                    entry["probabilities"] = [round(share, 6) for share in shares]
                yield json.dumps(entry, ensure_ascii=False)
                continue
            if form == "html":
                yield html.article([html.marked(tokens, self._marks(tags, shares))])
                continue
            for k, (token, tag) in enumerate(zip(tokens, tags, strict=True)):
                numbered = [] if form == "conll" else [str(sentence)]
                yield row([*numbered, token, tag, *(f"{share:.4f}" for share in shares[k : k + 1])], form)
            if form == "conll":
                yield ""

    def _marks(self, tags: Tags, shares: Sequence[float]) -> Iterator[html.Mark]:
        """The spans of a sentence, or each token with a tag; the probability is that of the least probable tag."""
        colours = {kind: number for number, kind in enumerate(sorted(self.known()))}
        if self.scheme == "plain":
            found = [(tag, k, k) for k, tag in enumerate(tags) if tag != spans.OUTSIDE]
        else:
            found = spans.spans(tags)
        for kind, start, end in found:
            share = min(shares[start : end + 1]) if shares else None
            yield html.Mark(start, end + 1, colours[kind or tags[start]], kind, share)


class Tag(Task[Tokens, SentenceItem, Tags, TagSettings]):
    """The specification."""

    name = "tag"
    summary = "one tag per token"
    settings = TagSettings
    prepared = PreparedTag
    forms: ClassVar = {name: what for name, what in columns.FORMS.items() if name != "lines"}
    outputs = ("conll", "table", "csv", "jsonl", "html")

    def read(self, path: Path, form: str, settings: TagSettings) -> Dataset[Tokens, Tags]:
        """Sentences and their tags."""
        source = columns.detect_form(path, form)
        found = columns.read_examples(source, settings.column)
        return Dataset([example.tokens for example in found], [example.tags for example in found], source.form)

    def prepare(
        self, data: Dataset[Tokens, Tags], settings: TagSettings, model_split: ModelSplit
    ) -> tuple[PreparedTag, list[Tags], list[str]]:
        """Collect the tags, and detect their scheme."""
        answers = _check_lengths(data.examples, data.answers)
        if settings.lang != "auto":
            splitter(settings.lang)  # an unknown name is an error now, not when raw text is read
        scheme, violations = spans.scheme_of(answers)
        if scheme == "plain":
            labels = sorted({tag for tags in answers for tag in tags})
        else:
            labels = spans.bioes_tags(kind for tags in answers for kind, _, _ in spans.spans(tags))
        if len(labels) < 2:
            raise TextError(f"every token has the same tag ({', '.join(labels)}); there is nothing to learn")
        if len(labels) > MOST_TAGS:
            found = Counter(tag for tags in answers for tag in tags)
            some = ", ".join(tag[:30] for tag in islice(found, 3))
            raise TextError(
                f"{len(labels):,} different tags for {found.total():,} tokens, such as {some}; a tagger predicts at "
                f"most {MOST_TAGS:,}. They are probably in another column: set it with --column, or column= in Python."
            )
        prepared = PreparedTag(
            labels=tuple(labels),
            scheme=scheme,
            model_split=model_split.lang,
            dictionary=choose_task_dictionary(settings.dictionary, settings.lang, model_split),
        )
        return prepared, answers, _violations(data.examples, answers, scheme, violations)

    def estimator(self) -> type[Tagger]:
        """Tagger."""
        from bilmo.tasks.tag.tagger import Tagger

        return Tagger


TAG = Tag()


def _violations(
    examples: Sequence[Tokens], answers: Sequence[Tags], scheme: spans.Scheme, places: Sequence[spans.Place]
) -> list[str]:
    """A note that names the first tags that do not fit the scheme."""
    if not places:
        return []
    named = [f"{answers[s][k]} of {examples[s][k]!r} in sentence {s + 1}" for s, k in places[:MOST_NAMED]]
    more = f" and {len(places) - MOST_NAMED:,} more" if len(places) > MOST_NAMED else ""
    count = "1 tag violates" if len(places) == 1 else f"{len(places):,} tags violate"
    read = "it is read as conlleval reads it" if len(places) == 1 else "they are read as conlleval reads them"
    return [f"{count} the scheme {scheme} ({read}): {', '.join(named)}{more}"]


def _check_lengths(examples: Sequence[Tokens], answers: Sequence[Tags]) -> list[Tags]:
    for number, (tokens, tags) in enumerate(zip(listed(examples), listed(answers), strict=True)):
        if len(tokens) != len(tags):
            raise TextError(f"sentence {number} has {len(tokens)} tokens, but {len(tags)} tags")
    return list(answers)

"""Relations: one label per text with two marked spans.

Knows: Task, marked texts. Blind to: torch until a head is built, the command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bilmo.errors import TextError
from bilmo.tasks.core import html
from bilmo.tasks.core.labels import Label, PreparedLabels, labels_of
from bilmo.tasks.core.measure import Score
from bilmo.tasks.core.spec import Dataset, PredictionInput, Task
from bilmo.tasks.data.splitting import ModelSplit, choose_task_dictionary, choose_text_split, split_texts
from bilmo.tasks.relate import relations_file
from bilmo.tasks.relate.marks import NAMES, Marked, Related, Span, marked_of, token_spans, with_marks
from bilmo.tasks.relate.measure import by_relation
from bilmo.tasks.relate.settings import RelateSettings

if TYPE_CHECKING:
    from bilmo.tasks.network.batch import Text
    from bilmo.tasks.network.input import TaskInput
    from bilmo.tasks.relate.head import RelationHead
    from bilmo.tasks.relate.relations import Relations


@dataclass(frozen=True)
class MarkedItem:
    """One text, its two spans of tokens, and the number of its label where it is known."""

    text: Text
    first: Span
    second: Span
    label: int | None = None

    @property
    def texts(self) -> Sequence[Text]:
        """The one text."""
        return (self.text,)


@dataclass(frozen=True, kw_only=True)
class PreparedRelate(PreparedLabels[Related, MarkedItem, RelateSettings]):
    """Facts learned from the training examples: the labels, and how texts are split."""

    columns = ("text",)

    def items(self, examples: Sequence[Related], answers: Sequence[Label] | None = None) -> list[MarkedItem]:
        """Texts without marks as lists of sentences, and their spans; strings are split."""
        marked = _marked(examples)
        labels = self.numbers(answers, len(marked))
        texts = split_texts([one.text for one in marked], self.lang, self.dictionary)
        found = []
        for one, text, label in zip(marked, texts, labels, strict=True):
            first, second = token_spans(one, [token for sentence in text for token in sentence])
            found.append(MarkedItem(text, first, second, label))
        return found

    def head(self, input: TaskInput, settings: RelateSettings) -> RelationHead:
        """A head with one score per label."""
        from bilmo.tasks.relate.head import RelationHead

        return RelationHead(input, self.labels, settings)

    def measure(self, true: Sequence[Label], predicted: Sequence[Label]) -> Score:
        """Macro F1 as the official scorer of SemEval-2010 task 8 counts it; one row per relation."""
        return by_relation(list(map(str, true)), list(map(str, predicted)))

    def read(self, path: Path, form: str, settings: RelateSettings) -> PredictionInput[Related]:
        """Marked texts to predict from; relations in the file are ignored."""
        source = relations_file.detect_input_form(path, form)
        return PredictionInput(relations_file.FORMS[source.form], relations_file.read_texts(source))

    def cells(self, example: Related) -> list[str]:
        """The text with its marks."""
        return [with_marks(example)]

    def paragraphs(self, example: Related) -> list[str]:
        """The text with both spans in colour."""
        text, *spans = marked_of(example)
        marks = [html.Mark(*span, number, NAMES[number]) for number, span in enumerate(spans)]
        return [html.marked(text, marks)]

    def fields(self, example: Related) -> dict[str, object]:
        """The text as it was given: with marks, or with spans beside it."""
        if isinstance(example, str):
            return {"text": example}
        text, *spans = example
        return {"text" if isinstance(text, str) else "tokens": text} | dict(zip(NAMES, spans, strict=True))


class Relate(Task[Related, MarkedItem, Label, RelateSettings]):
    """The specification."""

    name = "relate"
    summary = "one relation between two marked spans of a text"
    settings = RelateSettings
    prepared = PreparedRelate
    forms: ClassVar = {name: what for name, what in relations_file.FORMS.items() if name != "lines"}
    outputs = ("table", "csv", "jsonl", "html")
    sklearn_type = "classifier"

    def read(self, path: Path, form: str, settings: RelateSettings) -> Dataset[Related, Label]:
        """Marked texts and their relations."""
        source = relations_file.detect_form(path, form)
        examples, labels = relations_file.read_examples(source)
        return Dataset(examples, labels, source.form)

    def prepare(
        self, data: Dataset[Related, Label], settings: RelateSettings, model_split: ModelSplit
    ) -> tuple[PreparedRelate, list[Label], list[str]]:
        """Collect the labels, and choose how strings are split."""
        labels, answers = labels_of(data.answers)
        lang = choose_text_split(settings.lang, [one.text for one in _marked(data.examples)], model_split.lang)
        dictionary = choose_task_dictionary(settings.dictionary, lang, model_split)
        return PreparedRelate(labels=labels, lang=lang, dictionary=dictionary), answers, []

    def estimator(self) -> type[Relations]:
        """Relations."""
        from bilmo.tasks.relate.relations import Relations

        return Relations


RELATE = Relate()


def _marked(examples: Sequence[Related]) -> list[Marked]:
    """Texts without marks, and their spans; an error names the example."""
    found = []
    for number, example in enumerate(examples, start=1):
        try:
            found.append(marked_of(example))
        except TextError as error:
            raise TextError(f"text {number}: {error}") from None
    return found

"""Classification: one label per text.

Knows: Task, labelled texts, splitters. Blind to: torch until a head is built, the command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bilmo.tasks.classify.settings import ClassifySettings
from bilmo.tasks.core.labels import Label, PreparedLabels, labels_of
from bilmo.tasks.core.spec import Dataset, PredictionInput, Task
from bilmo.tasks.data import labelled
from bilmo.tasks.data.splitting import ModelSplit, RawText, choose_task_dictionary, choose_text_split, split_texts

if TYPE_CHECKING:
    from bilmo.tasks.classify.classifier import Classifier
    from bilmo.tasks.classify.head import TextHead
    from bilmo.tasks.network.batch import Text
    from bilmo.tasks.network.input import TaskInput


@dataclass(frozen=True)
class TextItem:
    """One text, and the number of its label where it is known."""

    text: Text
    label: int | None = None

    @property
    def texts(self) -> Sequence[Text]:
        """The one text."""
        return (self.text,)


@dataclass(frozen=True, kw_only=True)
class PreparedClassify(PreparedLabels[RawText, TextItem, ClassifySettings]):
    """Facts learned from the training examples: the labels, how texts are split, and the form of the file."""

    columns = ("text",)
    form: str = ""
    """The form of the file with the training examples; empty for examples from memory."""

    def items(self, examples: Sequence[RawText], answers: Sequence[Label] | None = None) -> list[TextItem]:
        """Texts as lists of sentences; strings are split."""
        labels = self.numbers(answers, len(examples))
        texts = split_texts(examples, self.lang, self.dictionary)
        return [TextItem(text, label) for text, label in zip(texts, labels, strict=True)]

    def head(self, input: TaskInput, settings: ClassifySettings) -> TextHead:
        """A head with one score per label."""
        from bilmo.tasks.classify.head import TextHead

        return TextHead(input, self.labels, settings)

    def read(self, path: Path, form: str, settings: ClassifySettings) -> PredictionInput[RawText]:
        """Texts to classify; labels in the file are ignored."""
        source = labelled.detect_input_form(path, form, self.known().__contains__, self.form)
        return PredictionInput(labelled.FORMS[source.form], labelled.read_texts(source))

    def header(self, form: str, *, probabilities: bool) -> str | None:
        """Names of columns where they are needed: `label<TAB>text` is read without them."""
        return None if form == "table" and not probabilities else super().header(form, probabilities=probabilities)

    def cells(self, example: RawText) -> list[str]:
        """The text."""
        return [example if isinstance(example, str) else " ".join(example)]

    def fields(self, example: RawText) -> dict[str, object]:
        """The text, or its tokens."""
        return {"text" if isinstance(example, str) else "tokens": example}


class Classify(Task[RawText, TextItem, Label, ClassifySettings]):
    """The specification."""

    name = "classify"
    summary = "one label per text"
    settings = ClassifySettings
    prepared = PreparedClassify
    forms: ClassVar = {name: what for name, what in labelled.FORMS.items() if name != "lines"}
    outputs = ("table", "csv", "jsonl", "html")
    sklearn_type = "classifier"

    def read(self, path: Path, form: str, settings: ClassifySettings) -> Dataset[RawText, Label]:
        """Texts and their labels."""
        source = labelled.detect_form(path, form)
        found = labelled.read_examples(source)
        return Dataset([example.text for example in found], [example.label for example in found], source.form)

    def prepare(
        self, data: Dataset[RawText, Label], settings: ClassifySettings, model_split: ModelSplit
    ) -> tuple[PreparedClassify, list[Label], list[str]]:
        """Collect the labels, and choose how strings are split."""
        labels, answers = labels_of(data.answers)
        lang = choose_text_split(settings.lang, data.examples, model_split.lang)
        dictionary = choose_task_dictionary(settings.dictionary, lang, model_split)
        return PreparedClassify(labels=labels, lang=lang, dictionary=dictionary, form=data.form), answers, []

    def estimator(self) -> type[Classifier]:
        """Classifier."""
        from bilmo.tasks.classify.classifier import Classifier

        return Classifier


CLASSIFY = Classify()

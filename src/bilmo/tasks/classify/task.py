"""Classification: one label per text.

Knows: Task, labelled texts, splitters. Blind to: torch until a head is built, the command line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np

from bilmo.errors import TextError
from bilmo.ids.batch import listed
from bilmo.tasks.classify.settings import ClassifySettings
from bilmo.tasks.core.measure import Score, by_label
from bilmo.tasks.core.spec import Dataset, PredictionInput, Prepared, Task, check_labels
from bilmo.tasks.data import labelled
from bilmo.tasks.data.labelled import RawText
from bilmo.tasks.data.rows import row
from bilmo.tasks.data.splitting import ModelSplit, choose_task_dictionary, choose_task_split, task_splitter
from bilmo.tasks.network.probabilities import Probabilities

if TYPE_CHECKING:
    from bilmo.tasks.classify.classifier import Classifier
    from bilmo.tasks.classify.head import TextHead
    from bilmo.tasks.network.batch import Text
    from bilmo.tasks.network.input import TaskInput

Label = str | int | bool
LABEL_TYPES = (str, int, bool)


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
class PreparedClassify(Prepared[RawText, TextItem, Label, ClassifySettings]):
    """What the training examples say: the labels, and how texts are split."""

    labels: tuple[bool, ...] | tuple[int, ...] | tuple[str, ...]
    lang: str
    """How strings are split."""
    form: str = ""
    """The form of the file with the training examples; empty for examples from memory."""

    def __post_init__(self) -> None:
        check_labels(self.labels)

    def check(self, examples: Sequence[RawText], answers: Sequence[Label]) -> list[Label]:
        """Labels must have the type of the trained ones."""
        kind = type(self.labels[0])
        return _check_type(answers, kind, f"of the trained type, {kind.__name__}")

    def items(self, examples: Sequence[RawText], answers: Sequence[Label] | None = None) -> list[TextItem]:
        """Texts as lists of sentences; strings are split."""
        split = task_splitter(self.lang, self.dictionary)
        tokens = iter(listed([text for text in examples if not isinstance(text, str)]))
        texts = []
        for text in examples:
            if isinstance(text, str):
                sentences = [sentence for line in text.split("\n") for sentence in split(line)]
            else:
                sentences = [list(next(tokens))]
            texts.append([sentence for sentence in sentences if sentence])
        numbers = {label: number for number, label in enumerate(self.labels)}
        labels = [None] * len(texts) if answers is None else [numbers[answer] for answer in answers]
        return [TextItem(text, label) for text, label in zip(texts, labels, strict=True)]

    def head(self, input: TaskInput, settings: ClassifySettings) -> TextHead:
        """A head with one score per label."""
        from bilmo.tasks.classify.head import TextHead

        return TextHead(input, self.labels, settings)

    def count(self, answers: Iterable[Label]) -> dict[str, int]:
        """How often each label occurs."""
        return dict(sorted(Counter(map(str, answers)).items()))

    def known(self) -> set[str]:
        """The trained labels."""
        return set(map(str, self.labels))

    def measure(self, true: Sequence[Label], predicted: Sequence[Label]) -> Score:
        """Accuracy; precision, recall and F1 per label; a confusion table."""
        return by_label(list(map(str, true)), list(map(str, predicted)))

    def read(self, path: Path, form: str, settings: ClassifySettings) -> PredictionInput[RawText]:
        """Texts to classify; labels in the file are ignored."""
        source = labelled.detect_input_form(path, form, self.known().__contains__, self.form)
        return PredictionInput(labelled.FORMS[source.form], labelled.read_texts(source))

    def header(self, form: str, *, probabilities: bool) -> str | None:
        """Names of columns where they are needed: `label<TAB>text` is read without them."""
        if form == "jsonl" or (form == "table" and not probabilities):
            return None
        return row(["label", *(self.labels if probabilities else ()), "text"], form)

    def lines(
        self,
        examples: Sequence[RawText],
        answers: Sequence[Label],
        probabilities: Sequence[Probabilities] | None,
        form: str,
        number: int,
    ) -> Iterator[str]:
        """One line per text."""
        all_shares = probabilities if probabilities is not None else [()] * len(examples)
        for text, label, shares in zip(examples, answers, all_shares, strict=True):
            if form == "jsonl":
                entry: dict[str, object] = {"label": label, "text" if isinstance(text, str) else "tokens": text}
                if probabilities is not None:
                    entry["probabilities"] = {
                        str(name): round(share, 6) for name, share in zip(self.labels, shares, strict=True)
                    }
                yield json.dumps(entry, ensure_ascii=False)
            else:
                shown = text if isinstance(text, str) else " ".join(text)
                yield row([label, *(f"{share:.4f}" for share in shares), shown], form)


class Classify(Task[RawText, TextItem, Label, ClassifySettings]):
    """The specification."""

    name = "classify"
    summary = "one label per text"
    settings = ClassifySettings
    prepared = PreparedClassify
    forms: ClassVar = {name: what for name, what in labelled.FORMS.items() if name != "lines"}
    outputs = ("table", "csv", "jsonl")
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
        first = data.answers[0]
        kind = type(first.item() if isinstance(first, np.generic) else first)
        answers = _check_type(data.answers, kind, "all strings, all integers or all booleans")
        labels = sorted(set(answers))
        if len(labels) < 2:
            raise TextError(f"every example has the label {labels[0]!r}; there is nothing to learn")
        strings = [text for text in data.examples if isinstance(text, str)]
        lines = (line for text in strings for line in text.split("\n"))
        lang = choose_task_split(settings.lang, lines, model_split.lang)
        if settings.lang == "auto" and not strings:  # trained on tokens, so strings are expected to be split already
            lang = "spaces"
        named = cast("tuple[str, ...]", tuple(labels))  # of one type, whichever it is
        dictionary = choose_task_dictionary(settings.dictionary, lang, model_split)
        return PreparedClassify(labels=named, lang=lang, dictionary=dictionary, form=data.form), answers, []

    def estimator(self) -> type[Classifier]:
        """Classifier."""
        from bilmo.tasks.classify.classifier import Classifier

        return Classifier


CLASSIFY = Classify()


def _check_type(answers: Sequence[Label], kind: type, needed: str) -> list[Label]:
    """Labels as plain values of one type; NumPy's scalars become Python's."""
    labels = [answer.item() if isinstance(answer, np.generic) else answer for answer in answers]
    for label in labels:
        if type(label) is not kind or kind not in LABEL_TYPES:
            raise TextError(f"a label is {label!r} ({type(label).__name__}); labels must be {needed}")
    return labels

"""Entailment: one label per pair of texts, such as entailment, neutral or contradiction.

Knows: Task, pairs of texts. Blind to: torch until a head is built, the command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bilmo.errors import TextError
from bilmo.tasks.core.labels import Label, PreparedLabels, labels_of
from bilmo.tasks.core.spec import Dataset, PredictionInput, Task
from bilmo.tasks.data.splitting import ModelSplit, choose_task_dictionary, choose_text_split, split_texts
from bilmo.tasks.entail import pairs
from bilmo.tasks.entail.pairs import Pair
from bilmo.tasks.entail.settings import EntailSettings

if TYPE_CHECKING:
    from bilmo.tasks.entail.entailment import Entailment
    from bilmo.tasks.entail.head import PairHead
    from bilmo.tasks.network.batch import Text
    from bilmo.tasks.network.input import TaskInput

MOST_TOKENS = 5000
"""Tokens in one text of a pair: the memory of the alignment grows with the product of both lengths."""


@dataclass(frozen=True)
class PairItem:
    """Two texts, and the number of their label where it is known."""

    first: Text
    second: Text
    label: int | None = None

    @property
    def texts(self) -> Sequence[Text]:
        """Both texts."""
        return self.first, self.second


@dataclass(frozen=True, kw_only=True)
class PreparedEntail(PreparedLabels[Pair, PairItem, EntailSettings]):
    """Facts learned from the training examples: the labels, and how texts are split."""

    columns = ("text1", "text2")

    def items(self, examples: Sequence[Pair], answers: Sequence[Label] | None = None) -> list[PairItem]:
        """Both texts as lists of sentences; strings are split."""
        checked = check_pairs(examples)
        labels = self.numbers(answers, len(checked))
        first, second = (split_texts([pair[k] for pair in checked], self.lang, self.dictionary) for k in (0, 1))
        for number, both in enumerate(zip(first, second, strict=True), start=1):
            longest = max(sum(map(len, text)) for text in both)
            if longest > MOST_TOKENS:
                raise TextError(
                    f"pair {number}: one of its texts has {longest:,} tokens; at most {MOST_TOKENS:,} can be aligned. "
                    "Shorten it, or split it into several pairs."
                )
        return [PairItem(a, b, label) for a, b, label in zip(first, second, labels, strict=True)]

    def head(self, input: TaskInput, settings: EntailSettings) -> PairHead:
        """A head with one score per label."""
        from bilmo.tasks.entail.head import PairHead

        return PairHead(input, self.labels, settings)

    def read(self, path: Path, form: str, settings: EntailSettings) -> PredictionInput[Pair]:
        """Pairs to predict from; labels in the file are ignored."""
        source = pairs.detect_input_form(path, form)
        return PredictionInput(pairs.FORMS[source.form], pairs.read_pairs(source))

    def cells(self, example: Pair) -> list[str]:
        """Both texts."""
        return [text if isinstance(text, str) else " ".join(text) for text in example]

    def fields(self, example: Pair) -> dict[str, object]:
        """Both texts, or their tokens."""
        return dict(zip(self.columns, example, strict=True))


class Entail(Task[Pair, PairItem, Label, EntailSettings]):
    """The specification."""

    name = "entail"
    summary = "one label per pair of texts, such as whether the first entails the second"
    settings = EntailSettings
    prepared = PreparedEntail
    forms: ClassVar = {name: what for name, what in pairs.FORMS.items() if name != "lines"}
    outputs = ("table", "csv", "jsonl", "html")
    sklearn_type = "classifier"

    def read(self, path: Path, form: str, settings: EntailSettings) -> Dataset[Pair, Label]:
        """Pairs and their labels."""
        source = pairs.detect_form(path, form)
        found = pairs.read_examples(source)
        left_out = f"{found.undecided:,} pairs with the label {pairs.UNDECIDED} (annotators disagree) are left out"
        return Dataset(found.pairs, found.labels, source.form, [left_out] if found.undecided else [])

    def prepare(
        self, data: Dataset[Pair, Label], settings: EntailSettings, model_split: ModelSplit
    ) -> tuple[PreparedEntail, list[Label], list[str]]:
        """Collect the labels, and choose how strings are split."""
        labels, answers = labels_of(data.answers)
        texts = [text for pair in check_pairs(data.examples) for text in pair]
        lang = choose_text_split(settings.lang, texts, model_split.lang)
        dictionary = choose_task_dictionary(settings.dictionary, lang, model_split)
        return PreparedEntail(labels=labels, lang=lang, dictionary=dictionary), answers, []

    def estimator(self) -> type[Entailment]:
        """Entailment."""
        from bilmo.tasks.entail.entailment import Entailment

        return Entailment


ENTAIL = Entail()


def check_pairs(examples: Sequence[Pair]) -> Sequence[Pair]:
    """Refuse examples that are not two texts; a string of two letters is not."""
    for number, pair in enumerate(examples, start=1):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise TextError(f"pair {number} is {pair!r:.60}; each example must be two texts: (text1, text2)")
    return examples

"""Summaries: a short text for a long one, such as a headline or a title.

Knows: the specification, files of pairs. Blind to: torch until a head is built, the command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bilmo.generate import scores
from bilmo.generate.data.pairs_file import FORMS, Fields
from bilmo.generate.prepared import GenerateTask, PreparedPairs
from bilmo.generate.settings import SummariseSettings
from bilmo.tasks.core.measure import Score
from bilmo.tasks.core.spec import Dataset, PredictionInput
from bilmo.tasks.data.splitting import ModelSplit, RawText, split_texts
from bilmo.text.offsets import offsets

if TYPE_CHECKING:
    from bilmo.generate.summariser import Summariser

LONG_LEAD = 3
"""Sentences of the baseline where summaries have more than one sentence."""


@dataclass(frozen=True, kw_only=True)
class PreparedSummarise(PreparedPairs[SummariseSettings]):
    """Facts learned from texts and summaries."""

    lead: int
    """The number of first sentences that the results are compared with."""

    def measure(self, true: Sequence[str], predicted: Sequence[str]) -> Score:
        """ROUGE."""
        return scores.rouge(true, predicted, chinese=self.chinese)

    def baselines(self, examples: Sequence[RawText], true: Sequence[str]) -> list[tuple[str, float]]:
        """ROUGE of the first sentences of each text."""
        found = scores.rouge_values(true, self.first_sentences(examples), chinese=self.chinese)
        first = "the first sentence" if self.lead == 1 else f"the first {self.lead} sentences"
        return [(f"{scores.NAMES[name]} of {first}", found[name]) for name in ("rougeL", "rouge1", "rouge2")]

    def first_sentences(self, examples: Sequence[RawText]) -> list[str]:
        """The first sentences of each text."""
        found = []
        for text, sentences in zip(examples, split_texts(examples, self.lang, self.dictionary), strict=True):
            tokens = [token for sentence in sentences[: self.lead] for token in sentence]
            if isinstance(text, str) and tokens:
                places = offsets(text, tokens)
                found.append(text[places[0][0] : places[-1][1]])
            else:
                found.append(" ".join(tokens))
        return found

    def read(self, path: Path, form: str, settings: SummariseSettings) -> PredictionInput[RawText]:
        """Texts to summarise; summaries in the file are ignored."""
        return self.read_fields(path, form, SUMMARISE.fields(settings))


class Summarise(GenerateTask[SummariseSettings]):
    """The specification."""

    name = "summarise"
    summary = "a summary of a text"
    settings = SummariseSettings
    prepared = PreparedSummarise
    forms: ClassVar = {name: what for name, what in FORMS.items() if name != "lines"}

    def fields(self, settings: SummariseSettings) -> Fields:
        """Text and summary; a list is joined, because it is the paragraphs of a text."""
        return Fields(settings.text_field, settings.summary_field, lists_are_paragraphs=True)

    def prepare(
        self, data: Dataset[RawText, str], settings: SummariseSettings, model_split: ModelSplit
    ) -> tuple[PreparedSummarise, list[str], list[str]]:
        """Collect the target words, and choose how both sides are split."""
        scores.need_rouge()
        facts, answers, notes = self.facts(data, settings, model_split)
        sentences = split_texts(answers, facts["target_lang"], facts["dictionary"])
        lead = LONG_LEAD if sum(map(len, sentences)) >= 1.5 * len(sentences) else 1
        return PreparedSummarise(**facts, lead=lead), answers, notes

    def estimator(self) -> type[Summariser]:
        """Summariser."""
        from bilmo.generate.summariser import Summariser

        return Summariser


SUMMARISE = Summarise()

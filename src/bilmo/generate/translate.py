"""Translation: a text in another language.

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
from bilmo.generate.settings import TranslateSettings
from bilmo.tasks.core.measure import Score
from bilmo.tasks.core.spec import Dataset, PredictionInput
from bilmo.tasks.data.splitting import ModelSplit, RawText

if TYPE_CHECKING:
    from bilmo.generate.translator import Translator


@dataclass(frozen=True, kw_only=True)
class PreparedTranslate(PreparedPairs[TranslateSettings]):
    """Facts learned from the pairs."""

    def measure(self, true: Sequence[str], predicted: Sequence[str]) -> Score:
        """BLEU and chrF."""
        return scores.bleu(true, predicted, chinese=self.chinese)

    def read(self, path: Path, form: str, settings: TranslateSettings) -> PredictionInput[RawText]:
        """Texts to translate; translations in the file are ignored."""
        return self.read_fields(path, form, TRANSLATE.fields(settings))


class Translate(GenerateTask[TranslateSettings]):
    """The specification."""

    name = "translate"
    summary = "a translation of a text"
    settings = TranslateSettings
    prepared = PreparedTranslate
    forms: ClassVar = {name: what for name, what in FORMS.items() if name != "lines"}

    def fields(self, settings: TranslateSettings) -> Fields:
        """Source and target; a list is the tokens of a text."""
        return Fields(settings.source_field, settings.target_field, lists_are_paragraphs=False)

    def prepare(
        self, data: Dataset[RawText, str], settings: TranslateSettings, model_split: ModelSplit
    ) -> tuple[PreparedTranslate, list[str], list[str]]:
        """Collect the target words, and choose how both sides are split."""
        scores.need_bleu()
        facts, answers, notes = self.facts(data, settings, model_split)
        return PreparedTranslate(**facts), answers, notes

    def estimator(self) -> type[Translator]:
        """Translator."""
        from bilmo.generate.translator import Translator

        return Translator


TRANSLATE = Translate()

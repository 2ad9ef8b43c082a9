"""The part of a model card that only the training run knows: text, recipe, perplexities, time.

`store.card` has the rest of the card.

Knows: recipes, corpus facts, progress. Blind to: networks, files.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields

from bilmo.training.corpus import Facts
from bilmo.training.events import Evaluation, Progress
from bilmo.training.recipe import Recipe


@dataclass(frozen=True)
class TrainingSection:
    """The facts about a run for the model card."""

    recipe: Recipe
    corpus: Facts
    texts: list[str]
    base: str | None
    """The model that is fine-tuned."""

    def markdown(self, progress: Progress, evaluation: Evaluation) -> str:
        """The section for the model as it is at this evaluation."""
        tokens, sentences = self.corpus.tokens, self.corpus.sentences
        rows = [
            ("text", ", ".join(self.texts)),
            ("lang", self.corpus.lang),
            ("trained on", f"{tokens['train']:,} words in {sentences['train']:,} sentences"),
            ("held out", f"{tokens['held_out']:,} words in {sentences['held_out']:,} sentences, never trained on"),
            ("steps", f"{progress.steps:,} ({_epochs(progress)})"),
            ("time", f"{progress.seconds / 60:.1f} minutes of training on one machine"),
            ("held-out perplexity forward", f"{evaluation.forward:.2f}"),
            ("held-out perplexity backward", f"{evaluation.backward:.2f}"),
            ("held-out perplexity, mean", f"{evaluation.mean:.2f}"),
            ("held-out perplexity of known words", f"{evaluation.known:.2f}"),
        ]
        if self.base:
            rows.insert(0, ("fine-tuned from", self.base))
        table = "".join(f"| {name} | {value} |\n" for name, value in rows)
        return (
            f"## Training\n\n| what | value |\n|---|---|\n{table}\n"
            "Perplexities are computed with the full softmax over isolated sentences of the held-out text, about "
            f"{evaluation.words:,} words of it. They count every word and one boundary per sentence, and unknown words "
            "as `<UNK>`, except where only known words are counted. Compare perplexities only if the text and the "
            "vocabulary are the same.\n\n"
            "![loss and perplexity](curve.svg)\n\n"
            f"### Recipe\n\n```toml\n{toml(self.recipe, without='network' if self.base else None)}```\n"
        )


def _epochs(progress: Progress) -> str:
    if progress.step_in_epoch:
        return f"in epoch {progress.epoch + 1}"
    return "1 epoch" if progress.epoch == 1 else f"{progress.epoch} epochs"


def toml(recipe: Recipe, without: str | None = None) -> str:
    """A recipe as a TOML file; a section that was not used can be left out."""
    parts = []
    for section in fields(recipe):
        if section.name == without:
            continue
        settings = asdict(getattr(recipe, section.name))
        lines = [f"{name} = {_toml_value(value)}\n" for name, value in settings.items() if value is not None]
        parts.append(f"[{section.name}]\n" + "".join(lines))
    return "\n".join(parts)


def _toml_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)  # TOML and JSON write strings in the same way

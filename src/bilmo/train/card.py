"""The part of a model card that only the training run knows: text, recipe, perplexities, time.

Knows: recipes, facts. Blind to: networks, files.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields

from bilmo.train.checkpoint import Progress
from bilmo.train.corpus import Facts
from bilmo.train.events import Look
from bilmo.train.recipe import Recipe


@dataclass(frozen=True)
class Story:
    """What a run was made of."""

    recipe: Recipe
    corpus: Facts
    texts: list[str]
    lang: str
    base: str | None
    """The model that was gone on from."""

    def tell(self, progress: Progress, look: Look) -> str:
        """Markdown for the card of the model as it was at this look."""
        tokens, sentences = self.corpus.tokens, self.corpus.sentences
        rows = [
            ("text", ", ".join(self.texts)),
            ("split", self.lang),
            ("trained on", f"{tokens['train']:,} words in {sentences['train']:,} sentences"),
            ("held out", f"{tokens['held']:,} words in {sentences['held']:,} sentences, never trained on"),
            ("steps", f"{progress.steps:,} ({_passes(progress)})"),
            ("time", f"{progress.seconds / 60:.1f} minutes of training on one machine"),
            ("held-out perplexity forward", f"{look.forward:.2f}"),
            ("held-out perplexity backward", f"{look.backward:.2f}"),
            ("held-out perplexity, mean", f"{look.mean:.2f}"),
        ]
        if self.base:
            rows.insert(0, ("gone on from", self.base))
        table = "".join(f"| {name} | {value} |\n" for name, value in rows)
        return (
            f"## Training\n\n| what | value |\n|---|---|\n{table}\n"
            "Perplexities are by the full softmax over isolated sentences of the held-out text, about "
            f"{look.words:,} words of it; every word and one boundary a sentence counts, unknown words as `<UNK>`. "
            "They compare only over the same text and vocabulary.\n\n![loss and perplexity](curve.svg)\n\n"
            f"### Recipe\n\n```toml\n{toml(self.recipe, without='network' if self.base else None)}```\n"
        )


def _passes(progress: Progress) -> str:
    if progress.step:
        return f"in pass {progress.epoch + 1} over the text"
    return "1 pass over the text" if progress.epoch == 1 else f"{progress.epoch} passes over the text"


def toml(recipe: Recipe, without: str | None = None) -> str:
    """A recipe as the file that gives it; a section that was not used may be left out."""
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
    return json.dumps(value, ensure_ascii=False)  # a string is written in TOML as in JSON

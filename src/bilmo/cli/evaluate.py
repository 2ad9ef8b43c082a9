"""`bilmo evaluate`: the perplexity of a model on a text."""

from __future__ import annotations

from pathlib import Path

import typer

from bilmo.cli.embed import Start
from bilmo.errors import TextError


def evaluate(
    model: Path = typer.Argument(help="A model with a softmax: one that bilmo trained, or a TensorFlow checkpoint."),
    texts: list[Path] = typer.Argument(help="Files or folders of text; plain, .gz, .xz, .zst or .zip; - for input."),
    start: Start = typer.Option(Start.settled, help="What every sentence starts from: settled, zero or carry."),
    lang: str = typer.Option("auto", help="How text is split: auto, spaces (it is split already), en, west, zh."),
) -> None:
    """Measure how well a model predicts a text: forward, backward and mean perplexity, by the full softmax.

    Every word counts, and one boundary a sentence; unknown words count as `<UNK>`. Their share is shown, and the mean
    perplexity of known words alone. Two perplexities compare only over the same text and vocabulary.
    """
    from bilmo.cli.show import tables as show
    from bilmo.embed.load import load
    from bilmo.embed.perplexity import score
    from bilmo.text.files import all_lines
    from bilmo.text.split import splitter, told_or_detected

    elmo = load(model, start=start.value)
    how, lines = told_or_detected(all_lines(texts), lang)
    split = splitter(how)
    with show.progress("sentences") as counted:
        found = score(elmo, counted(sentence for line in lines for sentence in split(line)))
    if not found.sentences:
        raise TextError(f"{', '.join(map(str, texts))}: no sentences to evaluate; every line is blank")
    perplexity = found.perplexity
    show.pairs(
        [
            ("split", how),
            ("text", f"{found.words:,} words in {found.sentences:,} sentences"),
            ("unknown words", f"{found.unknown:,} ({found.unknown / max(1, found.words):.2%})"),
            *((f"perplexity {name}", f"{value:.2f}") for name, value in perplexity.items()),
            ("of known words", f"{found.known:.2f}"),
        ]
    )

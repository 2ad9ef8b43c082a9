"""`bilmo fill`: which words fit a place in a sentence."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from bilmo.cli.options import Dictionary, EmbedDevice, Json, Lang, Model


def fill(
    model: Model,
    text: Annotated[str, typer.Argument(help="A text with one word in square brackets.", show_default=False)],
    number: Annotated[int, typer.Option("-n", "--number", min=1, help="Number of candidates.")] = 10,
    lang: Lang = "auto",
    dictionary: Dictionary = None,
    device: EmbedDevice = "cpu",
    json: Json = False,
) -> None:
    """Show which words a model expects in place of the word in square brackets, with the full softmax.

    `forward` is the probability of a word given the words before it, `backward` given the words after it, and `both`
    combines them. The model does not see the word in brackets; its own rank is shown below the candidates. Only words
    of the vocabulary can be predicted.
    """
    from bilmo import progress
    from bilmo.cli.show import messages
    from bilmo.cli.show import tables as show
    from bilmo.embed.inputs import decoded_argument
    from bilmo.embed.load import load

    with progress.working("loading the model"):
        elmo = load(model, lang=lang, dictionary=dictionary, device=device)
    found = elmo.fill(decoded_argument(text), topn=number)
    actual = found.actual
    if found.rank is None:
        messages.note(f"{actual.word!r} is not in the vocabulary of the model; it is scored as <UNK>")
    if json:
        show.json(asdict(found))
        return
    rows = [*enumerate(found.candidates, start=1), (found.rank, actual)]
    show.table(
        ["word", "rank", "both", "forward", "backward"],
        [
            (one.word, f"{rank:,}" if rank else "", *map(_percent, (one.probability, one.forward, one.backward)))
            for rank, one in rows
        ],
    )


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.3%}"

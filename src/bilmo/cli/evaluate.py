"""`bilmo evaluate`: the perplexity of a model on a text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bilmo.cli.completion import complete_model
from bilmo.cli.options import Dictionary, EmbedDevice, Json, Lang, SentenceStart, Start, Texts


def evaluate(
    model: Annotated[
        Path,
        typer.Argument(
            help="A model with a softmax: an installed model, a folder that bilmo trained, or a TensorFlow checkpoint.",
            autocompletion=complete_model,
        ),
    ],
    texts: Texts,
    start: SentenceStart = Start.settled,
    lang: Lang = "auto",
    dictionary: Dictionary = None,
    device: EmbedDevice = "cpu",
    json: Json = False,
) -> None:
    """Measure how well a model predicts a text: forward, backward and mean perplexity, with the full softmax.

    Perplexity counts every word and one boundary per sentence. Unknown words count as `<UNK>`, which is easy to
    predict, so their share and the perplexity of the known words are shown too. Compare two perplexities only if the
    text and the vocabulary are the same.
    """
    from bilmo.api import evaluate as api
    from bilmo.cli.show import tables as show

    found = api.evaluate(
        model, texts, start=start.value, lang=lang, dictionary=dictionary, device=device, progress=True
    )
    if json:
        counts = {"words": found.words, "sentences": found.sentences, "unknown": found.unknown}
        show.json({"lang": found.lang, **counts, "perplexity": found.perplexity, "known": found.known})
        return
    show.pairs(
        [
            ("lang", found.lang),
            ("text", f"{found.words:,} words in {found.sentences:,} sentences"),
            ("unknown words", f"{found.unknown:,} ({found.unknown / max(1, found.words):.2%})"),
        ]
    )
    print()
    known = found.known
    show.table(
        ["perplexity", "all words", "known words"],
        [(name, f"{value:.2f}", f"{known[name]:.2f}") for name, value in found.perplexity.items()],
    )

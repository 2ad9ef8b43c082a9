"""`bilmo similar`: the words nearest to given words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bilmo.cli.options import TEXT_FILES, Dictionary, EmbedDevice, Json, Lang, Model
from bilmo.errors import TextError, VocabError


def similar(
    model: Model,
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="Words whose neighbours are shown.")],
    text: Annotated[
        list[Path] | None,
        typer.Option(
            "--in",
            help=f"Text file or folder ({TEXT_FILES}): average each word's vectors over its uses in this text, instead "
            "of using the model's own word vectors. Can be repeated.",
        ),
    ] = None,
    number: Annotated[int, typer.Option("-n", "--number", min=1, help="Number of neighbours.")] = 10,
    min_count: Annotated[
        int, typer.Option(min=1, help="With --in: minimum count of a word; rarer words are ignored.")
    ] = 3,
    candidates: Annotated[
        int, typer.Option(min=4, help="Without --in: compare with this many words from the start of the vocabulary.")
    ] = 20_000,
    lang: Lang = "auto",
    dictionary: Dictionary = None,
    device: EmbedDevice = "cpu",
    json: Json = False,
) -> None:
    """Show the words nearest to a word, by cosine; for several words, one list each.

    Without `--in`, a word is represented by its context-free vector (layer 0), which reflects its spelling, and by its
    softmax row, which reflects the contexts it occurs in. A word outside the model's vocabulary has no softmax row,
    so only layer 0 is compared, and a note says so. With `--in`, a word is represented by its mean contextual vector
    in your text.
    """
    from bilmo import progress
    from bilmo.cli.show import tables as show
    from bilmo.embed.load import load
    from bilmo.sense import neighbours, uses

    if not all(word.strip() for word in words):
        raise TextError("a word is empty; give the words whose neighbours you want")
    with progress.working("loading the model"):
        elmo = load(model, lang=lang, dictionary=dictionary, device=device)
    if text:
        with progress.lines(text) as lines:
            sentences = (sentence for line in lines if line.strip() for sentence in elmo.split(line))
            vectors = uses.in_text(elmo, sentences, least=min_count)
        rare = [word for word in words if word not in vectors.words]
        if rare:
            raise TextError(f"{rare[0]!r} is used fewer than {min_count} times in the text, so it has no vector there")
        found = {word: neighbours.nearest(vectors, word, number) for word in words}
    else:
        if elmo.bundle.vocab is None:
            raise VocabError(f"{model}: has no vocabulary to search for neighbours; give a text with --in")
        with progress.working("comparing words"):
            found = {word: elmo.most_similar(word, topn=number, candidates=candidates) for word in words}
    if json:
        show.json(
            [
                {"word": word, "similar": [{"word": name, "cosine": cosine} for name, cosine in near]}
                for word, near in found.items()
            ]
        )
        return
    for place, (word, near) in enumerate(found.items()):
        if len(found) > 1:
            print(f"\n{word}:" if place else f"{word}:")
        show.pairs([(name, f"{cosine:.3f}") for name, cosine in near], right=True)

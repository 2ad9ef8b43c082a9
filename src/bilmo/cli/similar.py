"""`bilmo similar`: the words nearest to a word."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bilmo.cli.options import TEXT_FILES, EmbedDevice, Json, Lang, Model
from bilmo.errors import TextError, VocabError


def similar(
    model: Model,
    word: Annotated[str, typer.Argument(help="Word whose neighbours are shown.")],
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
    device: EmbedDevice = "cpu",
    json: Json = False,
) -> None:
    """Show the words nearest to a word, by cosine.

    Without `--in`, a word is represented by its context-free vector (layer 0), which reflects its spelling, and by its
    softmax row, which reflects the contexts it occurs in. A word outside the model's vocabulary has no softmax row,
    so only layer 0 is compared. With `--in`, a word is represented by its mean contextual vector in your text.
    """
    from bilmo import progress
    from bilmo.cli.show import tables as show
    from bilmo.embed.load import load
    from bilmo.sense import neighbours, uses
    from bilmo.text.split import choose_split, splitter

    if not word.strip():
        raise TextError("the word is empty; give the word whose neighbours you want")
    with progress.working("loading the model"):
        elmo = load(model, device=device)
    if text:
        with progress.lines(text) as lines:
            how, lines = choose_split(lines, lang)
            split = splitter(how)
            vectors = uses.in_text(elmo, (sentence for line in lines for sentence in split(line)), least=min_count)
        if word not in vectors.words:
            raise TextError(f"{word!r} is used fewer than {min_count} times in the text, so it has no vector there")
    else:
        if elmo.bundle.vocab is None:
            raise VocabError(f"{model}: has no vocabulary to search for neighbours; give a text with --in")
        if not elmo.config.words.chars and word not in elmo.bundle.vocab:
            raise VocabError(f"{model}: has vectors only for the words of its table, and {word!r} is not one of them")
        vectors = uses.of_vocabulary(elmo, candidates, word)
    found = neighbours.nearest(vectors, word, number)
    if json:
        rows = [{"word": name, "cosine": cosine} for name, cosine in found]
        show.json([{"word": word, "similar": rows}])
    else:
        show.pairs([(name, f"{cosine:.3f}") for name, cosine in found], right=True)

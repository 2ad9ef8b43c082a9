"""`bilmo similar`: the words nearest to a word."""

from __future__ import annotations

from pathlib import Path

import typer

from bilmo.errors import TextError, VocabError


def similar(
    model: Path = typer.Argument(help="A model of any layout."),
    word: str = typer.Argument(help="The word to find neighbours of."),
    text: list[Path] = typer.Option(
        [],
        "--in",
        help="Average each word over its uses in this text; without it, by the model's own vectors of words.",
    ),
    number: int = typer.Option(10, "-n", "--number", min=1, help="How many neighbours."),
    least: int = typer.Option(3, min=1, help="With --in: leave out words that are used less often."),
    words: int = typer.Option(
        20_000, min=4, help="Without --in: compare with so many of the vocabulary's first words."
    ),
    lang: str = typer.Option("auto", help="How text is split: auto, spaces (it is split already), en, west, zh."),
) -> None:
    """Show the words nearest to a word, by cosine.

    The model's own vectors of a word are what it is when it is read, which knows its spelling, and what it is when it
    is predicted, which knows its company; a word that the model never predicts has the first alone. Averaged over its
    uses in a text, a word has its meaning there.
    """
    from bilmo.cli.show import tables as show
    from bilmo.embed.load import load
    from bilmo.sense import neighbours, uses
    from bilmo.text.files import all_lines
    from bilmo.text.split import splitter, told_or_detected

    if not word.strip():
        raise TextError("the word is empty; name a word to find neighbours of")
    elmo = load(model)
    if text:
        how, lines = told_or_detected(all_lines(text), lang)
        split = splitter(how)
        with show.progress("sentences") as counted:
            sentences = counted(sentence for line in lines for sentence in split(line))
            vectors = uses.in_text(elmo, sentences, least=least)
        if word not in vectors.words:
            raise TextError(f"{word!r} is used fewer than {least} times in the text, so it has no vector there")
    else:
        if elmo.bundle.vocab is None:
            raise VocabError(f"{model}: has no vocabulary to look for neighbours in; name a text with --in")
        if not elmo.config.words.chars and word not in elmo.bundle.vocab:
            raise VocabError(f"{model}: knows words by a table alone, and {word!r} is not in it")
        vectors = uses.of_vocabulary(elmo, words, word)
    show.pairs([(name, f"{cosine:.3f}") for name, cosine in neighbours.nearest(vectors, word, number)], right=True)

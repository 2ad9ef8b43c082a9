"""`bilmo similar`: the words nearest to given words, or the uses nearest to a word in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bilmo.cli.options import TEXT_FILES, Dictionary, EmbedDevice, Json, Lang, Model
from bilmo.errors import ConfigError, TextError, VocabError

if TYPE_CHECKING:
    from bilmo.embed.options import LoadOptions


def similar(
    model: Model,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="WORD...",
            help="Words whose neighbours are shown; or sentences, each with one word in square brackets.",
        ),
    ],
    text: Annotated[
        list[Path] | None,
        typer.Option(
            "--in",
            help=f"Text file or folder ({TEXT_FILES}): average each word's vectors over its uses in this text, instead "
            "of using the model's own word vectors. Can be repeated. For a word in square brackets: the text, or the "
            "index made by `bilmo index`, whose uses are searched.",
        ),
    ] = None,
    number: Annotated[int, typer.Option("-n", "--number", min=1, help="Number of neighbours.")] = 10,
    min_count: Annotated[
        int, typer.Option(min=1, help="With --in: minimum count of a word; rarer words are ignored.")
    ] = 3,
    candidates: Annotated[
        int, typer.Option(min=4, help="Without --in: compare with this many words from the start of the vocabulary.")
    ] = 20_000,
    same_word: Annotated[
        bool, typer.Option("--same-word", help="For a word in square brackets: search only uses of the same word.")
    ] = False,
    lang: Lang = "auto",
    dictionary: Dictionary = None,
    device: EmbedDevice = "cpu",
    json: Json = False,
) -> None:
    """Show the words that are most similar to a word, or the most similar uses of a word in a sentence.

    Several words or sentences give one list each.

    Without `--in`, a word is represented by its context-free vector (layer 0), which reflects its spelling, and by its
    softmax row, which reflects the contexts it occurs in. A word outside the model's vocabulary has no softmax row,
    so only layer 0 is compared, and a note says so. With `--in`, a word is represented by its mean contextual vector
    in your text.

    A word in square brackets, as in "He sat on the [bank].", is compared with every use of every word in the text or
    the index that `--in` names, and the most similar uses are shown, each in its sentence.
    """
    from bilmo import progress
    from bilmo.cli.show import tables as show
    from bilmo.embed.load import load
    from bilmo.embed.options import LoadOptions
    from bilmo.sense import neighbours, uses
    from bilmo.sense.index_folder import is_index

    if not all(word.strip() for word in words):
        raise TextError("a word is empty; give the words whose neighbours you want")
    if any({"[", "]"} & set(word) and len(word) > 1 for word in words):  # a bracket alone is a word
        _uses(model, words, text, number, same_word, LoadOptions(lang=lang, dictionary=dictionary, device=device), json)
        return
    if same_word:
        raise ConfigError('--same-word needs a word in square brackets, as in "He sat on the [bank]."')
    for path in text or ():
        if is_index(path):
            raise TextError(
                f"{path}: is an index, in which a word in square brackets is searched, as in "
                '"He sat on the [bank]."; for words alone, name the text itself'
            )
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


def _uses(
    model: Path,
    words: list[str],
    texts: list[Path] | None,
    number: int,
    same_word: bool,
    loading: LoadOptions,
    json: bool,
) -> None:
    """The uses nearest to words in square brackets."""
    from bilmo import progress
    from bilmo.cli.show import indexing as show
    from bilmo.embed.inputs import decoded_argument
    from bilmo.embed.load import load
    from bilmo.sense.index import index_among, search_files

    if not texts:
        raise ConfigError("a word in square brackets is searched in a text or an index; name it with --in")
    index = index_among(texts)
    with progress.working("loading the model"):
        elmo = load(model, **loading)
    with progress.working("searching"):
        found = {
            text: search_files(elmo, texts, text, number, same_word=same_word)
            if index is None
            else index.search(elmo, text, number, same_word=same_word)
            for text in map(decoded_argument, words)
        }
    show.uses(found, json=json)

"""`bilmo senses`: the uses of a word, in groups of similar contexts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bilmo.cli.completion import complete_one_of
from bilmo.cli.options import TEXT_FILES, Dictionary, EmbedDevice, Json, Lang, Model, mix_of
from bilmo.errors import ConfigError, TextError

if TYPE_CHECKING:
    from bilmo.sense.senses import Senses

ON_PAGE = 10
"""Examples of each sense on a page."""


def senses(
    model: Model,
    word: Annotated[str, typer.Argument(help="The word whose uses are grouped.", show_default=False)],
    text: Annotated[
        list[Path],
        typer.Option(
            "--in",
            help=f"Text file or folder with uses of the word ({TEXT_FILES}); can be repeated. Or an index made by "
            "`bilmo index`.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Also draw a map of the uses: .html (with examples), .svg, or .png (needs the extra `draw`).",
        ),
    ] = None,
    number: Annotated[int, typer.Option("-n", "--number", min=1, help="Number of examples of each sense.")] = 3,
    mix: Annotated[
        str | None,
        typer.Option(
            help="Layers that are compared: `top`, `mean`, `concat`, or layer numbers.",
            show_default="top; in an index, those of its vectors",
            autocompletion=complete_one_of("top", "mean", "concat"),
        ),
    ] = None,
    lang: Lang = "auto",
    dictionary: Dictionary = None,
    device: EmbedDevice = "cpu",
    json: Json = False,
) -> None:
    """Group the uses of a word in a text or an index by their contexts, so that each group is a sense or a way of use.

    The number of groups is the one with the highest mean silhouette, which measures how much nearer a use is to its
    own group than to the next one. If no number separates the uses well, there is one group. Each group
    is shown with words that are typical near its uses, and with its most typical examples.
    """
    from bilmo import progress
    from bilmo.cli.show import tables as show
    from bilmo.embed.load import load
    from bilmo.formats.open import files_of
    from bilmo.sense.draw import write
    from bilmo.sense.index import index_among
    from bilmo.sense.index_run import check_model
    from bilmo.sense.senses import Senses
    from bilmo.store.output import check_output
    from bilmo.text.files import STDIN

    how = mix_of(mix or "top")
    if how == "all":
        raise ConfigError("--mix is 'all'; words are compared by one vector each: mean, top, concat, or layer numbers")
    if STDIN in text:
        raise ConfigError("the text is read twice, so it cannot be standard input; name a file")
    if output is not None:
        write.check_extension(output)
        check_output([output], texts=text, files=files_of(model))
    index = index_among(text)
    if index is not None and mix:
        raise ConfigError("an index has vectors of one mix of layers, which are compared; leave out --mix")
    with progress.working("loading the model"):
        elmo = load(model, lang=lang, dictionary=dictionary, device=device)
    if index is None:
        found = Senses.find(elmo, word, text, mix=how, progress=True)
    else:
        check_model(elmo, index.folder, index.config)
        found = Senses.in_index(word, index)
        if not found.senses:
            raise TextError(f"{word!r} is not used in {index.folder}; give a word as it is written there")
    if output is not None:
        draw(found, output)
    if json:
        shown = [{**asdict(sense), "uses": [asdict(use) for use in sense.uses[:number]]} for sense in found.senses]
        counted = [{"number_of_uses": len(sense.uses), **one} for sense, one in zip(found.senses, shown, strict=True)]
        show.json({"word": found.word, "uses": found.total, "silhouettes": found.silhouettes, "senses": counted})
        return
    count = len(found.senses)
    print(f"{found.word}: {found.total:,} uses, {count} {'group' if count == 1 else 'groups'}")
    for place, sense in enumerate(found.senses, start=1):
        print(f"\n{place}. {len(sense.uses):,} uses, near: {', '.join(sense.typical_words)}")
        for use in sense.uses[:number]:
            print(f"   {use.text}")
    if output is not None:
        print(f"\n{output}")


def draw(found: Senses, output: Path) -> None:
    """The map of the uses; a page has examples below it."""
    from bilmo.sense.draw import write
    from bilmo.sense.draw.scatter import scatter
    from bilmo.tasks.core.html import article, escaped

    names = [", ".join(sense.typical_words) for sense in found.senses]
    points = [[(use.x, use.y, use.text) for use in sense.uses] for sense in found.senses]
    note = "Each point is a use; the two axes are the main directions in which the vectors differ."
    heading = f"{found.word}: {found.total:,} uses"
    below = [
        article([escaped(use.text) for use in sense.uses[:ON_PAGE]], f"{place} · near: {name}")
        for place, (sense, name) in enumerate(zip(found.senses, names, strict=True), start=1)
    ]
    write.write(output, scatter(f"Uses of {found.word}", names, points, note), heading, "\n".join(below))

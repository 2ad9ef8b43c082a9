"""`bilmo draw`: pictures of the similarities of words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bilmo.cli.completion import complete_one_of
from bilmo.cli.options import TEXT_FILES, Dictionary, EmbedDevice, Lang, Model, mix_of
from bilmo.errors import ConfigError


def draw(
    model: Model,
    sentences: Annotated[
        list[str],
        typer.Argument(metavar="SENTENCE [SENTENCE]", help="One sentence or two, each in quotes.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="File to write: .html (a page that needs no network), .svg, or .png (needs the extra `draw`).",
        ),
    ],
    mix: Annotated[
        str,
        typer.Option(
            help="For two sentences: the layers that are compared: `mean`, `top`, `concat`, or layer numbers.",
            autocompletion=complete_one_of("mean", "top", "concat"),
        ),
    ] = "mean",
    text: Annotated[
        list[Path] | None,
        typer.Option(
            "--in",
            help=f"For two sentences: centre and whiten the vectors with the statistics of this text ({TEXT_FILES}). "
            "Otherwise, the raw vectors are compared, which are all similar. Can be repeated.",
        ),
    ] = None,
    lang: Lang = "auto",
    dictionary: Dictionary = None,
    device: EmbedDevice = "cpu",
) -> None:
    """Draw how similar words are, by the cosines of their contextual vectors.

    Two sentences: a table of the words of one with the words of the other. One sentence: its words with each other, in
    each layer. The picture follows the light or dark theme of the viewer; PNG is light.
    """
    from bilmo import progress
    from bilmo.embed.load import load
    from bilmo.formats.open import files_of
    from bilmo.sense import similarity
    from bilmo.sense.draw import heatmap, write
    from bilmo.sense.index_folder import is_index
    from bilmo.sense.space import Space
    from bilmo.store.output import check_output

    if len(sentences) > 2:
        raise ConfigError(f"a picture shows one sentence or two; found {len(sentences)}. Put each sentence in quotes.")
    if text and len(sentences) == 1:
        raise ConfigError("--in is for two sentences; the layers of one are compared as they are")
    if any(map(is_index, text or ())):
        raise ConfigError("--in takes texts for the statistics; found an index")
    how = mix_of(mix)
    if how == "all":
        raise ConfigError("--mix is 'all'; words are compared by one vector each: mean, top, concat, or layer numbers")
    write.check_extension(output)
    check_output([output], texts=text or [], files=files_of(model))
    with progress.working("loading the model"):
        elmo = load(model, lang=lang, dictionary=dictionary, device=device)
    rows = [similarity.tokens_of(elmo, sentence) for sentence in sentences]
    if len(rows) == 1:
        names = ["layer 0: the words alone", *(f"layer {number}" for number in range(1, elmo.config.layers + 1))]
        note = "Cosines of the raw vectors; each layer has its own scale."
        picture = heatmap.layers(rows[0], names, similarity.by_layer(elmo, rows[0]), note)
    else:
        space = None
        if text:
            with progress.working("embedding a sample of the text"):
                space = Space.of_files(elmo, text, how)
        shown = f"layers {mix}" if mix[0].isdigit() else mix
        note = f"Cosines of contextual vectors ({shown}{', whitened' if space else ''})."
        picture = heatmap.pair(rows[0], rows[1], similarity.between(elmo, rows[0], rows[1], how, space), note)
    write.write(output, picture, " · ".join(sentences))
    print(output)
